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
 * Longer than the limit for a hung metad: after its restart metad serves the guest. A start of
 * noded has this time left after it waited for a predecessor's metad.
 */
const TOLD_WITHIN_MS = 150_000;
const TELL_AGAIN_MS = 500;

/**
 * Decides about an adopted guest that may have been migrating. The record is rewritten first, so
 * that a pending commit fails. The guest continues on the node of the record, and its QEMU process
 * ends on the other node.
 * @returns whether it belongs to this node
 * @throws AppError of the store: it stays paused
 */
export async function settleGuest(
  machine: Pick<Machine, 'uuid' | 'migration'>,
  kind: 'run' | 'moving',
  dependencies: SettleGuestDependencies,
): Promise<boolean> {
  const { logger } = dependencies;
  const { uuid, migration } = machine;
  const state = await migration.state().catch((error: unknown) => {
    // QMP does not answer. A normal run is kept anyway.
    if (kind === 'moving') throw error;
    logger.warn('machine.state-unknown', { machine: uuid, err: error });
    return null;
  });
  if (state === null) return true;
  if (!mayBeElsewhere(kind, state)) {
    // QEMU continued the guest by itself after the link was cut, but metad still believes that it
    // leaves.
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
 * Continues a guest here and makes metad serve it again. The guest does not wait for a slow metad,
 * but the next migration waits for both.
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

/** Tells metad that the guest stays. Otherwise metad refuses the guest. */
export async function tellMetad(
  uuid: string,
  { metad, logger }: Pick<SettleGuestDependencies, 'metad' | 'logger'>,
): Promise<void> {
  const deadlineMs = performance.now() + TOLD_WITHIN_MS;
  for (;;) {
    try {
      return await metad.stay(uuid);
    } catch (error) {
      // A new or older metad serves the guest anyway.
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
  // An instance without a record exists only here and keeps running.
  return owner === undefined || owner === dependencies.nodeName || dependencies.owns(owner);
}
