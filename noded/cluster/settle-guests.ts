import { isAppError } from '#shared/errors/app-error.ts';
import type { Machine } from '../hypervisor/machine.ts';
import type { MetadCalls } from '../metad-link/metad-client.ts';
import { hasBegun, judgeSurvivor, mayBeElsewhere } from './plan-migration.ts';
import { decideOwner, isOwnForGood, type SettleMovesDependencies } from './settle-moves.ts';

export interface SettleGuestDependencies extends Pick<
  SettleMovesDependencies,
  'nodeName' | 'owns' | 'instances' | 'logger'
> {
  readonly metad: Pick<MetadCalls, 'stay'>;
}

/**
 * What becomes of a machine that outlived its daemon, of which a migration may have been under way:
 * the record is written anew before, so that a commit that is still on its way fails. A guest goes on
 * on the node that the record names, and its machine ends on the other one.
 * @returns whether it is this node's
 * @throws AppError of the store: it stands still, and nobody has it
 */
export async function settleGuest(
  machine: Pick<Machine, 'uuid' | 'migration'>,
  kind: 'run' | 'moving',
  dependencies: SettleGuestDependencies,
): Promise<boolean> {
  const { logger } = dependencies;
  const { uuid, migration } = machine;
  const state = await migration.state().catch((error: unknown) => {
    // Nobody can speak to it: one of a normal run is kept as any other.
    if (kind === 'moving') throw error;
    logger.warn('machine.state-unknown', { machine: uuid, err: error });
    return null;
  });
  if (state === null) return true;
  if (!mayBeElsewhere(kind, state)) {
    // QEMU itself let the guest go on where the link was cut: to metad it is leaving still.
    if (hasBegun(state)) await tellMetad(uuid, dependencies);
    return true;
  }
  const verdict = judgeSurvivor(state, await isStillOwn(uuid, kind, dependencies));
  logger.warn('migration.settled', { machine: uuid, ...state, verdict });
  if (verdict === 'ends') return false;
  await tellMetad(uuid, dependencies);
  await migration.abandon();
  return true;
}

/** That its guest stays, also where it knows of nothing else. */
export async function tellMetad(
  uuid: string,
  { metad, logger }: Pick<SettleGuestDependencies, 'metad' | 'logger'>,
): Promise<void> {
  try {
    await metad.stay(uuid);
  } catch (error) {
    if (!isAppError(error, 'INSTANCE_NOT_FOUND'))
      logger.warn('metad.not-told', { instance: uuid, err: error });
  }
}

async function isStillOwn(
  uuid: string,
  kind: 'run' | 'moving',
  dependencies: SettleGuestDependencies,
): Promise<boolean> {
  if (kind === 'moving') return isOwnForGood(uuid, dependencies);
  const owner = await decideOwner(uuid, dependencies);
  // Of one without a record nobody else knows: it runs on, as any other that lost it.
  return owner === undefined || owner === dependencies.nodeName || dependencies.owns(owner);
}
