import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceDisks } from '../disks/instance-disks.ts';
import type { MovingDisks } from '../disks/moving-disks.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';

export interface SettleMovesDependencies {
  readonly nodeName: string;
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string) => boolean;
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly disks: Pick<InstanceDisks, 'settleCopy'>;
  readonly moving: Pick<MovingDisks, 'listLeaving' | 'comeBack' | 'removeLeft'>;
  readonly logger: Logger;
}

/**
 * Whose an instance is, decided: the record is written anew, so that a move that was under way, and
 * whose commit may still be on its way to the store, finds another one than it read, and fails.
 * @returns its node; undefined when there is no record
 */
async function decideOwner(
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

/** Whether disks that arrived in a folder of this node are those of an instance of it. */
export async function isOwnForGood(
  uuid: string,
  dependencies: Pick<SettleMovesDependencies, 'nodeName' | 'owns' | 'instances'>,
): Promise<boolean> {
  const { nodeName, owns, instances } = dependencies;
  const record = await instances.findByUuid(uuid);
  if (record === undefined) return false;
  if (record.primaryNode === nodeName || owns(record.primaryNode)) return true;
  if (!owns(nodeName)) {
    throw new AppError(
      'NODE_REMOVED',
      'a node that was removed from its cluster changes no record',
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
 * Ends what is left of a departure: disks whose instance is another node's by now go, for that node
 * had all of them, verified and synced, before it could become so. Others come back, those of which
 * the store knows nothing too.
 * @returns whether the instance has left
 */
export async function settleDeparture(
  uuid: string,
  dependencies: Pick<SettleMovesDependencies, 'nodeName' | 'owns' | 'instances' | 'moving'>,
): Promise<boolean> {
  const { nodeName, owns, moving } = dependencies;
  const owner = await decideOwner(uuid, dependencies);
  // A node that was removed meanwhile owns nothing, and what has its name is its own all the same.
  const hasLeft = owner !== undefined && owner !== nodeName && !owns(owner);
  if (hasLeft) await moving.removeLeft(uuid);
  else await moving.comeBack(uuid);
  return hasLeft;
}

/** All departures that nobody works on: of a daemon that was killed, of a job that could not end. */
export async function settleDepartures(dependencies: SettleMovesDependencies): Promise<void> {
  const { nodeName, owns, moving, logger } = dependencies;
  // Who was removed from the cluster changes no record, and so cannot know.
  if (!owns(nodeName)) return;
  for (const uuid of await moving.listLeaving()) {
    try {
      const hasLeft = await settleDeparture(uuid, dependencies);
      logger.warn('departure.settled', { instance: uuid, hasLeft });
    } catch (error) {
      logger.error('departure.not-settled', { instance: uuid, err: error });
    }
  }
}
