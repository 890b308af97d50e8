import type { InstanceSummary } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailure } from '../../failures/failure.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../instance/change.ts';
import { submitAndWatch } from '../submit.ts';

/** Named in one message; a node may have thousands. */
const MAX_NAMED = 20;
const FIELDS = ['name', 'primaryNode', 'running'] as const;

/**
 * `gnt-node evacuate NODE`: each of its stopped instances goes where placement sends it, one after
 * the other. One that cannot go does not keep the others.
 * @throws AppError INSTANCE_STATE where one runs: nothing is moved; CommandFailure
 */
export async function runEvacuate(
  context: Context,
  node: string,
  options: ForceOptions,
): Promise<void> {
  const client = await context.client();
  const nodes = (await client.nodes()).map(({ name }) => name);
  if (!nodes.includes(node)) {
    throw new AppError('NODE_NOT_FOUND', `node '${node}' does not exist`, {
      hint: `the nodes are ${nodes.join(', ')}`,
      details: { name: node },
    });
  }
  const there = (await Array.fromAsync(client.instanceSummaries(FIELDS)))
    .flat()
    .filter(({ primaryNode }) => primaryNode === node);
  refuseRunning(node, there);
  if (there.length === 0) {
    context.note(`node ${node} has no instances`);
    return;
  }
  await confirmLoss(
    context,
    `This moves ${there.length} instance(s) from ${node} to other nodes.`,
    options,
  );
  const failed: string[] = [];
  for (const { name } of there) {
    try {
      await submitAndWatch(context, { opcode: 'INSTANCE_MOVE', name }, options);
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code === 'INTERRUPTED') throw error;
      context.warn(`${name}: ${error.message}`);
      failed.push(name);
    }
  }
  if (failed.length > 0) throw stayed(node, failed);
  if (!options.submit && !options.dryRun) context.note(`node ${node} has no instances any more`);
}

function refuseRunning(
  node: string,
  there: readonly Pick<InstanceSummary, 'name' | 'running'>[],
): void {
  const names = there.filter(({ running }) => running !== null).map(({ name }) => name);
  if (names.length === 0) return;
  throw new AppError(
    'INSTANCE_STATE',
    `${names.length} instance(s) of ${node} are running, so nothing is moved: ${listNames(names)}`,
    {
      details: { node, instances: names },
      hint: 'gnt-instance shutdown each of them first: what runs is not migrated',
    },
  );
}

function stayed(node: string, names: readonly string[]): AppError {
  return new AppError(
    'COMMAND_FAILED',
    `${names.length} instance(s) stay on ${node}: ${listNames(names)}`,
    {
      details: { node, instances: [...names] },
      hint: 'see the reason of each above, and repeat it',
    },
  );
}

function listNames(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED;
  return [...names.slice(0, MAX_NAMED), ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ');
}
