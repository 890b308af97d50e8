import type { InstanceSummary } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailure } from '../../failures/failure.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch } from '../submit.ts';

/** Named in one message; a node may have thousands. */
const MAX_NAMED = 20;
const FIELDS = ['name', 'primaryNode', 'running'] as const;

/**
 * `gnt-node evacuate NODE`: each of its instances goes where placement sends it, one after the other:
 * those that run migrate, and go on meanwhile. One that cannot go does not keep the others.
 * @throws AppError NODE_NOT_FOUND; CommandFailure
 */
export async function runEvacuate(
  context: Context,
  node: string,
  options: ForceOptions,
): Promise<void> {
  const there = await listThere(context, node);
  if (there.length === 0) {
    context.note(`node ${node} has no instances`);
    return;
  }
  await sendAll(context, { node, there }, options);
  if (!options.submit && !options.dryRun) context.note(`node ${node} has no instances any more`);
}

/** `gnt-node migrate NODE`: the same of those that run, which go on meanwhile. */
export async function runNodeMigrate(
  context: Context,
  node: string,
  options: ForceOptions,
): Promise<void> {
  const there = (await listThere(context, node)).filter(({ running }) => running !== null);
  if (there.length === 0) {
    context.note(`nothing runs on node ${node}`);
    return;
  }
  await sendAll(context, { node, there }, options);
  if (!options.submit && !options.dryRun) context.note(`nothing runs on node ${node} any more`);
}

type There = Pick<InstanceSummary, 'name' | 'running'>;

/** @throws AppError NODE_NOT_FOUND */
async function listThere(context: Context, node: string): Promise<readonly There[]> {
  const client = await context.client();
  const nodes = (await client.nodes()).map(({ name }) => name);
  if (!nodes.includes(node)) {
    throw new AppError('NODE_NOT_FOUND', `node '${node}' does not exist`, {
      hint: `the nodes are ${nodes.join(', ')}`,
      details: { name: node },
    });
  }
  return (await Array.fromAsync(client.instanceSummaries(FIELDS)))
    .flat()
    .filter(({ primaryNode }) => primaryNode === node);
}

interface Sending {
  readonly node: string;
  readonly there: readonly There[];
}

async function sendAll(
  context: Context,
  { node, there }: Sending,
  options: ForceOptions,
): Promise<void> {
  await confirmLoss(
    context,
    `This moves ${there.length} instance(s) from ${node} to other nodes.`,
    options,
  );
  const failed: string[] = [];
  for (const { name, running } of there) {
    const opcode = running === null ? 'INSTANCE_MOVE' : 'INSTANCE_MIGRATE';
    try {
      await submitAndWatch(context, { opcode, name }, options);
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code === 'INTERRUPTED') throw error;
      context.warn(`${name}: ${error.message}`);
      failed.push(name);
    }
  }
  if (failed.length > 0) throw stayed(node, failed);
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
