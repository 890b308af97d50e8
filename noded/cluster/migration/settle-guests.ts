import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Machine } from '../../vmm/machine.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import { hasBegun, judgeSurvivor, mayBeElsewhere } from './plan-migration.ts';
import { decideOwner, isOwnForGood, type SettleMovesDependencies } from './settle-moves.ts';

export interface SettleGuestDependencies extends Pick<
  SettleMovesDependencies,
  'nodeName' | 'owns' | 'instances' | 'logger'
> {
  readonly metad: Pick<MetadCalls, 'stay'>;
}

/**
 * Longer than a metad that hangs is left alone: one that was started anew keeps no guest out. After
 * a predecessor's metad has been waited for, a start of noded has this time still.
 */
const TOLD_WITHIN_MS = 150_000;
const TELL_AGAIN_MS = 500;

/**
 * What becomes of a machine that outlived its daemon, of which a migration may have been under way:
 * the record is written anew before, so that a commit that is still on its way fails. A guest goes
 * on on the node that the record names, and its machine ends on the other one.
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
  await goOn(uuid, migration, dependencies);
  return true;
}

/**
 * A guest goes on here after all, and metad serves it again. It does not stand still for a metad
 * that is slow; who would let it migrate once more waits for both.
 */
export async function goOn(
  uuid: string,
  migration: Pick<Machine['migration'], 'abandon'>,
  dependencies: Pick<SettleGuestDependencies, 'metad' | 'logger'>,
): Promise<void> {
  const told = tellMetad(uuid, dependencies);
  try {
    await migration.abandon();
  } finally {
    await told;
  }
}

/**
 * That its guest stays, also where it knows of nothing else. One that is not told refuses the
 * guest.
 */
export async function tellMetad(
  uuid: string,
  { metad, logger }: Pick<SettleGuestDependencies, 'metad' | 'logger'>,
): Promise<void> {
  const deadlineMs = performance.now() + TOLD_WITHIN_MS;
  for (;;) {
    try {
      return await metad.stay(uuid);
    } catch (error) {
      // Also of one that was started anew, or is older and keeps nobody out.
      if (isAppError(error, 'INSTANCE_NOT_FOUND')) return;
      if (!isAppError(error, 'METAD_UNAVAILABLE') || performance.now() > deadlineMs)
        return logger.error('metad.not-told', { instance: uuid, err: error });
      await sleep(TELL_AGAIN_MS);
    }
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
