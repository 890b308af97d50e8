import type { ListedNode } from '#shared/contract/api.ts';
import type { DataLinks } from '#shared/contract/data-links.ts';
import type { NodeFlags } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { formatAddress } from '#shared/socket/listen-address.ts';
import type { Context } from '../../terminal/context.ts';
import { nodeFields } from '../../fields/other-fields.ts';
import { formatBytes, formatMiB, formatTime } from '../../render/format.ts';
import { renderOutline } from '../../render/outline.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

export async function runNodeList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const items = await client.ask('GET /v1/nodes');
  printList(
    context,
    {
      table: nodeFields,
      items,
      nameOf: ({ name }) => name,
      names,
      notFound: (name) => nodeNotFound(name, items),
      defaultSort: 'name',
    },
    options,
  );
}

export function runNodeListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, nodeFields, options);
}

/** Prints nodes; without a name, the local node. */
export async function runNodeInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const infos =
    names.length === 0
      ? [await client.ask('GET /v1/node')]
      : await findNodes(client.ask('GET /v1/nodes'), names);
  if (options.json) {
    context.print(JSON.stringify(infos.length === 1 ? infos[0] : infos, null, 2));
    return;
  }
  context.print(infos.map((node) => describeNode(node).join('\n')).join('\n\n'));
}

/** Removes a node for good. */
export async function runNodeRemove(
  context: Context,
  name: string,
  options: { readonly forgetInstances?: boolean },
): Promise<void> {
  const client = await context.client();
  await client.ask('DELETE /v1/nodes/{name}', {
    name,
    query: { 'forget-instances': options.forgetInstances ? '1' : undefined },
  });
  context.note(`node ${name} removed from the cluster`);
}

export interface NodeModifyOptions extends SubmitOptions {
  readonly drained?: boolean;
  readonly offline?: boolean;
}

export async function runNodeModify(
  context: Context,
  name: string,
  { drained, offline, ...options }: NodeModifyOptions,
): Promise<void> {
  if (drained === undefined && offline === undefined) {
    throw new AppError('USAGE', 'no change given', {
      hint: `gnt-node modify --drained yes ${name}, or --offline yes`,
    });
  }
  const opcode = { opcode: 'NODE_SET_PARAMS', name, drained, offline } as const;
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`node ${name} modified`);
}

async function findNodes(
  loading: Promise<readonly ListedNode[]>,
  names: readonly string[],
): Promise<readonly ListedNode[]> {
  const nodes = await loading;
  return names.map((name) => {
    const node = nodes.find((each) => each.name === name);
    if (node) return node;
    throw nodeNotFound(name, nodes);
  });
}

function describeNode(node: ListedNode): readonly string[] {
  if ('silent' in node) {
    return renderOutline([
      { key: 'Node name', value: node.name },
      { key: 'State', value: `not responding: ${node.silent}` },
      ...describeFlags(node.flags),
      { key: 'Instances', value: node.instances },
    ]);
  }
  return renderOutline([
    { key: 'Node name', value: node.name },
    ...(node.removedAtMs === null
      ? []
      : [
          {
            key: 'State',
            value: `removed from its cluster at ${formatTime(node.removedAtMs)}; next step: gnt-node doctor`,
          },
        ]),
    ...describeFlags(node.flags),
    { key: 'Version', value: node.version },
    { key: 'Root', value: node.root },
    { key: 'Daemon', value: `process ${node.pid}, since ${formatTime(node.startedAtMs)}` },
    {
      key: 'Metadata daemon',
      value:
        node.metad.pid === null
          ? `not running, ${node.metad.restarts} restart(s)`
          : `process ${node.metad.pid}, ${node.metad.restarts} restart(s)`,
    },
    { key: 'Network namespace', value: node.networkNamespace },
    { key: 'Processors', value: node.cpus },
    {
      key: 'Memory',
      value: `${formatMiB(node.memoryMiB, 'h')}, ${formatMiB(node.memoryFreeMiB, 'h')} free`,
    },
    { key: 'Free disk space', value: formatBytes(node.diskFreeBytes) },
    { key: 'Instances', value: `${node.instances}, ${node.instancesRunning} running` },
    ...node.orphans.map(({ name, uuid, pid }) => ({
      key: 'Orphan',
      value: `${name} (${uuid}), process ${pid}: gnt-instance adopt ${name}`,
    })),
    ...describeDataLinks(node.dataLinks),
    { key: 'Appliance', value: `${node.appliance.state}: ${node.appliance.detail}` },
  ]);
}

function describeDataLinks(links: DataLinks | null): Parameters<typeof renderOutline>[0] {
  if (links === null) return [];
  const { address, reason } = links;
  const own = address === null ? `none: ${reason}` : formatAddress(address);
  return [
    { key: 'Data address', value: own },
    ...links.links.map((link) => ({
      key: `Data link to ${link.node}`,
      value: {
        direct: 'direct, TLS 1.3',
        unused: 'not in use',
        store: `through the store: ${link.reason}`,
      }[link.path],
    })),
  ];
}

function describeFlags({ drained, offline }: NodeFlags): Parameters<typeof renderOutline>[0] {
  const marks = [...(drained ? ['drained'] : []), ...(offline ? ['offline'] : [])];
  return marks.length === 0 ? [] : [{ key: 'Flags', value: marks.join(', ') }];
}

export function nodeNotFound(name: string, nodes: readonly ListedNode[]): AppError {
  const near = suggest(
    name,
    nodes.map((node) => node.name),
  );
  return new AppError('NODE_NOT_FOUND', `node '${name}' does not exist`, {
    hint: near ? `Did you mean ${near}?` : 'gnt-node list shows the nodes',
    details: { name },
  });
}
