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
  /** Returns whether a record's node name means this node. */
  readonly owns: (node: string) => boolean;
  readonly instances: Pick<
    InstanceRepository,
    'findByUuid' | 'update' | 'hasLeft' | 'departedFrom' | 'forgetDeparture'
  >;
  readonly disks: Pick<InstanceDisks, 'settleCopy'>;
  readonly moving: Pick<MovingDisks, 'listLeaving' | 'comeBack' | 'removeLeft'>;
  /** Asks the node of an instance whether it has the disks. @throws AppError NODE_UNREACHABLE */
  readonly isTaken: (node: string, uuid: string) => Promise<boolean>;
  readonly logger: Logger;
}

type DecideDependencies = Pick<
  SettleMovesDependencies,
  'nodeName' | 'owns' | 'instances' | 'moving' | 'logger'
>;

/** Limit for the other node's answer; the next sweep asks again. */
const TAKEN_TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 10_000;
/** A node without an answer may be lost. */
const MAX_PAUSE_MS = 10 * 60_000;

/**
 * Decides the owner of an instance. The record is rewritten, so that a pending commit of a move
 * finds another serial number and fails.
 * @returns its node; undefined without a record
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
 * Decides whether arrived disks belong to an instance of this node. Reading the record is not
 * enough: a commit can be read before the replicas have it, and lost in a failover, so that the
 * other node continues too. A successful write proves the earlier commit.
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
 * Ends an arrival: disks of an instance of this node get their final names, others are removed.
 * @returns whether the instance belongs to this node
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
 * Decides about departing disks. They return if the instance belongs to this node or is unknown to
 * the store. They are removed if the instance was removed after it had left.
 * @returns the other node that owns the instance, or undefined
 */
export async function decideDeparture(
  uuid: string,
  dependencies: DecideDependencies,
): Promise<string | undefined> {
  const { nodeName, owns, instances, moving } = dependencies;
  const owner = await decideOwner(uuid, dependencies);
  // A removed node owns nothing, but records with its name are its own.
  if (owner !== undefined && owner !== nodeName && !owns(owner)) return owner;
  if (owner === undefined && (await instances.hasLeft(uuid, nodeName)))
    await removeDeparted(uuid, dependencies);
  else await moving.comeBack(uuid);
  return undefined;
}

/**
 * Ends a departure. Disks of an instance of another node are removed after that node has confirmed
 * its own. After a failed commit these are the only disks.
 * @returns whether the instance has left
 * @throws AppError NODE_UNREACHABLE, CONFLICT: the disks stay
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

/** Removes departed disks and the note of the departure. */
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
 * Settles departures that were interrupted before their commit. For a start, so it waits for no
 * other node.
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

/** Removes notes without local files: of shared disks, or of a killed daemon. */
async function forgetDepartures(dependencies: DecideDependencies): Promise<void> {
  const { nodeName, instances, moving } = dependencies;
  const leaving = new Set(await moving.listLeaving());
  for (const uuid of await instances.departedFrom(nodeName))
    if (!leaving.has(uuid)) await instances.forgetDeparture(uuid, nodeName);
}

/** Restores disks of a failed move, for a job that finds none. */
export async function bringBack(uuid: string, dependencies: DecideDependencies): Promise<void> {
  if ((await dependencies.moving.listLeaving()).includes(uuid))
    await decideDeparture(uuid, dependencies);
}

/**
 * Creates a sweep over abandoned departures of killed daemons and failed jobs. The pauses per
 * departure grow.
 */
export function createDepartureSweeper(
  dependencies: SettleMovesDependencies & { readonly clock: Pick<Clock, 'monotonicMs'> },
): () => Promise<void> {
  const { nodeName, owns, moving, clock } = dependencies;
  const turns = new Map<string, { readonly dueMs: number; readonly pauseMs: number }>();
  return async () => {
    // A removed node cannot change records.
    if (!owns(nodeName)) return;
    const leaving = await moving.listLeaving();
    for (const uuid of turns.keys()) if (!leaving.includes(uuid)) turns.delete(uuid);
    for (const uuid of leaving) {
      const { dueMs, pauseMs } = turns.get(uuid) ?? { dueMs: 0, pauseMs: FIRST_PAUSE_MS };
      if (clock.monotonicMs() < dueMs) continue;
      const settle = (): Promise<boolean> => settleDeparture(uuid, dependencies);
      const error = await tellSettled(uuid, settle, dependencies);
      const nowMs = clock.monotonicMs();
      // A sweep costs little while the store is unavailable, and decides at once when it is back.
      if (error === null || isAppError(error, 'STORE_UNAVAILABLE')) turns.delete(uuid);
      else
        turns.set(uuid, { dueMs: nowMs + pauseMs, pauseMs: Math.min(2 * pauseMs, MAX_PAUSE_MS) });
    }
  };
}

/**
 * Creates a sweep over abandoned copies and arrivals of jobs whose end could not be recorded. A
 * folder must be present in two sweeps, because a new one may be a test of the file system.
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

/** @returns the reason that prevents it, or null */
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
    // The node may be lost; doctor gives advice.
    const level = isAppError(error, 'NODE_UNREACHABLE') ? 'warn' : 'error';
    logger[level]('departure.not-settled', { instance: uuid, err: error });
    return error;
  }
}

/** Creates the question to the node of an instance, which first completes an arrival. */
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
