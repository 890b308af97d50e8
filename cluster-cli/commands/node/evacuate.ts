import type { InstanceSummary } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailure } from '../../failures/failure.ts';
import type { Context } from '../../terminal/context.ts';
import { holdInterrupt, nameSome } from '../between-jobs.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch } from '../submit.ts';

/** Names in one message; a node may have thousands of instances. */
const MAX_NAMED = 20;
const FIELDS = ['name', 'primaryNode', 'running', 'diskTemplate'] as const;

/**
 * Sends each instance of the node to a node that placement chooses, one after the other. Running
 * instances migrate. A failure does not stop the others.
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
  if (options.submit || options.dryRun) return;
  refuseLeft(node, await listThere(context, node));
  context.note(`node ${node} evacuated`);
}

/** Migrates only the running instances of a node. */
export async function runNodeMigrate(
  context: Context,
  node: string,
  options: ForceOptions,
): Promise<void> {
  const listRunning = async (): Promise<readonly There[]> =>
    (await listThere(context, node)).filter(({ running }) => running !== null);
  const there = await listRunning();
  if (there.length === 0) {
    context.note(`node ${node} has no running instances`);
    return;
  }
  await sendAll(context, { node, there }, options);
  if (options.submit || options.dryRun) return;
  refuseLeft(node, await listRunning());
  context.note(`running instances of node ${node} migrated`);
}

/** Fails over the instances with shared disks of a failed node. */
export async function runNodeFailover(
  context: Context,
  node: string,
  options: ForceOptions,
): Promise<void> {
  const listShared = async (): Promise<readonly There[]> =>
    (await listThere(context, node)).filter(({ diskTemplate }) => diskTemplate === 'sharedfile');
  const there = await listShared();
  if (there.length === 0) {
    context.note(`node ${node} has no instances with shared disks`);
    return;
  }
  await sendAll(context, { node, there, opcode: 'INSTANCE_FAILOVER' }, options);
  if (options.submit || options.dryRun) return;
  refuseLeft(node, await listShared());
  context.note(`instances of node ${node} with shared disks failed over`);
}

type There = Pick<InstanceSummary, 'name' | 'running' | 'diskTemplate'>;

/** @throws AppError NODE_NOT_FOUND */
async function listThere(context: Context, node: string): Promise<readonly There[]> {
  const client = await context.client();
  const nodes = (await client.ask('GET /v1/nodes')).map(({ name }) => name);
  if (!nodes.includes(node)) {
    throw new AppError('NODE_NOT_FOUND', `node '${node}' does not exist`, {
      hint: `The nodes are ${nodes.join(', ')}`,
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
  /** The opcode for all of them; absent: by the state of each. */
  readonly opcode?: 'INSTANCE_FAILOVER';
}

async function sendAll(
  context: Context,
  { node, there, opcode: given }: Sending,
  options: ForceOptions,
): Promise<void> {
  await confirmLoss(
    context,
    `This moves ${there.length} instance(s) from ${node} to other nodes.`,
    options,
  );
  const failed: There[] = [];
  using between = holdInterrupt(context);
  for (const [at, one] of there.entries()) {
    const { name, running } = one;
    const opcode = given ?? (running === null ? 'INSTANCE_MOVE' : 'INSTANCE_MIGRATE');
    try {
      await submitAndWatch(context, { opcode, name }, options);
      between.throwIfInterrupted();
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code === 'INTERRUPTED') {
        const rest = there.slice(at + 1).map((other) => other.name);
        if (rest.length > 0) context.note(`not moved: ${nameSome(rest)}`);
        throw error;
      }
      context.warn(`${name}: ${error.message}`);
      failed.push(one);
    }
  }
  // Without waiting for jobs, the failed submissions are the remaining instances.
  if (options.submit || options.dryRun) refuseLeft(node, failed);
}

/**
 * Fails with the remaining instances. The list may be out of date: sending many instances takes
 * hours.
 * @throws AppError COMMAND_FAILED
 */
function refuseLeft(node: string, left: readonly There[]): void {
  if (left.length === 0) return;
  const names = left.map(({ name }) => name);
  throw new AppError(
    'COMMAND_FAILED',
    `${names.length} instance(s) remain on ${node}: ${listNames(names)}`,
    {
      details: { node, instances: names },
      hint: `See the reasons above and repeat; gnt-node modify --drained yes ${node} keeps new instances away`,
    },
  );
}

function listNames(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED;
  return [...names.slice(0, MAX_NAMED), ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ');
}
