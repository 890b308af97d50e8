import { GROUP } from '#shared/contract/node-group.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { groupFields, type NodeGroup } from '../../fields/other-fields.ts';
import type { Context } from '../../terminal/context.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

export async function runGroupList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const [cluster, instances] = await Promise.all([
    client.ask('GET /v1/cluster'),
    Array.fromAsync(client.instanceSummaries(['name'])),
  ]);
  const group = {
    createdAtMs: cluster.createdAtMs,
    nodes: cluster.nodes,
    instances: instances.flat().map(({ name }) => name),
  } satisfies NodeGroup;
  printList(
    context,
    {
      table: groupFields,
      items: [group],
      nameOf: () => GROUP,
      names,
      notFound: (name) =>
        new AppError('NOT_FOUND', `node group '${name}' does not exist`, {
          hint: `All nodes belong to the group ${GROUP}`,
          details: { name },
        }),
      toJson: (item) => ({ name: GROUP, ...item }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runGroupListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, groupFields, options);
}
