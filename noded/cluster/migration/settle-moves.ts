import type { Clock } from '#shared/clock/clock.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { MovingDisks } from '../../storage/moving-disks.ts';
import type { Peers } from '../peers/ask-peer.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { createMigrationTargetClient } from './migration-target-client.ts';

export interface SettleMovesDependencies {
  readonly nodeName: string;
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string) => boolean;
  readonly instances: Pick<
    InstanceRepository,
    'findByUuid' | 'update' | 'hasLeft' | 'departedFrom' | 'forgetDeparture'
  >;
  readonly disks: Pick<InstanceDisks, 'settleCopy'>;
  readonly moving: Pick<MovingDisks, 'listLeaving' | 'comeBack' | 'removeLeft'>;
  /**
   * Whether the node of an instance says that it has its disks.
   * @throws AppError NODE_UNREACHABLE
   */
  readonly isTaken: (node: string, uuid: string) => Promise<boolean>;
  readonly logger: Logger;
}

type DecideDependencies = Pick<
  SettleMovesDependencies,
  'nodeName' | 'owns' | 'instances' | 'moving' | 'logger'
>;

/** Until the other node says whose an instance is; the next look asks again. */
const TAKEN_TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 10_000;
/** A node that does not say that it has the disks may be gone for good. */
const MAX_PAUSE_MS = 10 * 60_000;

/**
 * Whose an instance is, decided: the record is written anew, so that a move that was under way, and
 * whose commit may still be on its way to the store, finds another one than it read, and fails.
 * @returns its node; undefined when there is no record
 */
export async function decideOwner(
  uuid: string,
  { instances }: Pick<SettleMovesDependencies, 'instances'>,
): Promise<string | undefined> {
  try {
    return (await instances.update(uuid, (current) => current)).primaryNode;
  } catch (error) {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return undefined;
    throw error;
  }
}

/**
 * Whether disks that arrived in a folder of this node are those of an instance of it. That the
 * record says so is not enough: a commit can be read before the replicas have it, and a failover
 * takes it back, so that the other node goes on as well. A write that comes through has it in front
 * of it.
 */
export async function isOwnForGood(
  uuid: string,
  dependencies: Pick<SettleMovesDependencies, 'nodeName' | 'owns' | 'instances'>,
): Promise<boolean> {
  const { nodeName, owns, instances } = dependencies;
  const record = await instances.findByUuid(uuid);
  if (record === undefined) return false;
  if (!owns(nodeName)) {
    if (record.primaryNode === nodeName) return true;
    throw new AppError(
      'NODE_REMOVED',
      'a node that was removed from its cluster cannot change records',
    );
  }
  const owner = await decideOwner(uuid, dependencies);
  return owner !== undefined && owns(owner);
}

/**
 * Ends what is left of an arrival: disks whose instance is this node's get their place, others go.
 * @returns whether the instance is this node's
 */
export async function settleArrival(
  uuid: string,
  dependencies: Pick<SettleMovesDependencies, 'nodeName' | 'owns' | 'instances' | 'disks'>,
): Promise<boolean> {
  const isOwn = await isOwnForGood(uuid, dependencies);
  await dependencies.disks.settleCopy(uuid, () => Promise.resolve(isOwn));
  return isOwn;
}

/**
 * Whose disks are that were on their way out, decided: those that are this node's come back, and
 * those of which the store knows nothing too. They go where the instance was removed after it had
 * left.
 * @returns the node that has the instance by now; undefined when there is none, or it is this one
 */
export async function decideDeparture(
  uuid: string,
  dependencies: DecideDependencies,
): Promise<string | undefined> {
  const { nodeName, owns, instances, moving } = dependencies;
  const owner = await decideOwner(uuid, dependencies);
  // A node that was removed meanwhile owns nothing, and what has its name is its own all the same.
  if (owner !== undefined && owner !== nodeName && !owns(owner)) return owner;
  if (owner === undefined && (await instances.hasLeft(uuid, nodeName)))
    await removeDeparted(uuid, dependencies);
  else await moving.comeBack(uuid);
  return undefined;
}

/**
 * Ends what is left of a departure. What is another node's goes when that node says that it has it:
 * of one that was lost after the commit these are the only disks.
 * @returns whether the instance has left
 * @throws AppError NODE_UNREACHABLE, CONFLICT: they stay
 */
export async function settleDeparture(
  uuid: string,
  dependencies: SettleMovesDependencies,
): Promise<boolean> {
  const owner = await decideDeparture(uuid, dependencies);
  if (owner === undefined) return false;
  if (!(await dependencies.isTaken(owner, uuid))) throw notTaken(owner);
  await removeDeparted(uuid, dependencies);
  return true;
}

/** Removes what has left, and the note that it did. */
export async function removeDeparted(
  uuid: string,
  { nodeName, instances, moving }: Pick<DecideDependencies, 'nodeName' | 'instances' | 'moving'>,
): Promise<void> {
  await moving.removeLeft(uuid);
  await instances.forgetDeparture(uuid, nodeName);
}

export function notTaken(node: string): AppError {
  return new AppError('CONFLICT', `node ${node} reports that the instance is not its own`);
}

/**
 * For a start, which asks no other node and waits for none: departures of which a daemon was killed
 * before their commit.
 */
export async function returnDepartures(dependencies: DecideDependencies): Promise<void> {
  const { nodeName, owns, moving } = dependencies;
  if (!owns(nodeName)) return;
  for (const uuid of await moving.listLeaving()) {
    const settle = async (): Promise<boolean> =>
      (await decideDeparture(uuid, dependencies)) !== undefined;
    await tellSettled(uuid, settle, dependencies);
  }
  await forgetDepartures(dependencies);
}

/** Notes of which nothing is here any more: of shared disks, of a daemon that was killed. */
async function forgetDepartures(dependencies: DecideDependencies): Promise<void> {
  const { nodeName, instances, moving } = dependencies;
  const leaving = new Set(await moving.listLeaving());
  for (const uuid of await instances.departedFrom(nodeName))
    if (!leaving.has(uuid)) await instances.forgetDeparture(uuid, nodeName);
}

/** For a job that finds no disks of an instance: those that a failed move has left, perhaps. */
export async function bringBack(uuid: string, dependencies: DecideDependencies): Promise<void> {
  if ((await dependencies.moving.listLeaving()).includes(uuid))
    await decideDeparture(uuid, dependencies);
}

/**
 * All departures that nobody works on: of a daemon that was killed, of a job that could not end.
 * Each look is for those whose turn it is: at first it comes soon, and then less and less often.
 */
export function createDepartureSweeper(
  dependencies: SettleMovesDependencies & { readonly clock: Pick<Clock, 'monotonicMs'> },
): () => Promise<void> {
  const { nodeName, owns, moving, clock } = dependencies;
  const turns = new Map<string, { readonly dueMs: number; readonly pauseMs: number }>();
  return async () => {
    // Who was removed from the cluster changes no record, and so cannot know.
    if (!owns(nodeName)) return;
    const leaving = await moving.listLeaving();
    for (const uuid of turns.keys()) if (!leaving.includes(uuid)) turns.delete(uuid);
    for (const uuid of leaving) {
      const { dueMs, pauseMs } = turns.get(uuid) ?? { dueMs: 0, pauseMs: FIRST_PAUSE_MS };
      if (clock.monotonicMs() < dueMs) continue;
      const settle = (): Promise<boolean> => settleDeparture(uuid, dependencies);
      const error = await tellSettled(uuid, settle, dependencies);
      const nowMs = clock.monotonicMs();
      // A store that is away is asked at each look: what it says is true when it is back.
      if (error === null || isAppError(error, 'STORE_UNAVAILABLE')) turns.delete(uuid);
      else
        turns.set(uuid, { dueMs: nowMs + pauseMs, pauseMs: Math.min(2 * pauseMs, MAX_PAUSE_MS) });
    }
  };
}

/**
 * Copies and arrivals on which nobody works any more: of a job whose end the store could not tell.
 * One that was not there a look ago may be a trial of what the file system can.
 */
export function createCopySweeper(
  dependencies: Omit<SettleMovesDependencies, 'moving' | 'isTaken'> & {
    readonly disks: Pick<InstanceDisks, 'listCopies' | 'settleCopy'>;
    readonly moving: Pick<MovingDisks, 'isArriving' | 'whileNobodys'>;
  },
): () => Promise<void> {
  const { nodeName, owns, disks, moving, logger } = dependencies;
  let before: readonly string[] = [];
  return async () => {
    if (!owns(nodeName)) return;
    const found = (await disks.listCopies()).filter((uuid) => !moving.isArriving(uuid));
    for (const uuid of found.filter((one) => before.includes(one))) {
      try {
        await moving.whileNobodys(uuid, () => settleArrival(uuid, dependencies));
        logger.warn('copy.settled', { instance: uuid });
      } catch (error) {
        logger.error('copy.not-settled', { instance: uuid, err: error });
      }
    }
    before = found;
  };
}

/** @returns what keeps it from being settled; null when it is */
async function tellSettled(
  uuid: string,
  settle: () => Promise<boolean>,
  { logger }: Pick<SettleMovesDependencies, 'logger'>,
): Promise<unknown> {
  try {
    const hasLeft = await settle();
    logger.warn('departure.settled', { instance: uuid, hasLeft });
    return null;
  } catch (error) {
    // Its node is down, perhaps for good: doctor says what to do.
    const level = isAppError(error, 'NODE_UNREACHABLE') ? 'warn' : 'error';
    logger[level]('departure.not-settled', { instance: uuid, err: error });
    return error;
  }
}

/**
 * How the node of an instance is asked whether it has its disks too: it gives what has arrived its
 * name first.
 */
export function createIsTaken(peers: Peers | null): SettleMovesDependencies['isTaken'] {
  return async (node, uuid) => {
    const signal = AbortSignal.timeout(TAKEN_TIMEOUT_MS);
    try {
      if (peers === null) throw new Error('this node is a cluster of its own');
      return (await createMigrationTargetClient(peers, node).end(uuid, signal)).isTaken;
    } catch (error) {
      if (isAppError(error)) throw error;
      throw new AppError(
        'NODE_UNREACHABLE',
        `node '${node}' does not confirm that it has the disks of instance ${uuid}`,
        { details: { node }, hint: 'Start gnt-noded there.', cause: error },
      );
    }
  };
}
