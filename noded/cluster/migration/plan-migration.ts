import { MIB } from '#shared/units/bytes.ts';
import type { MigrationState, SendingProgress } from '../../vmm/machine-migration.ts';

/** What a guest stands still for at first, and at most. */
const FIRST_DOWNTIME_MS = 300;
const MAX_DOWNTIME_MS = 9600;
/**
 * A guest that writes as fast as its memory leaves is given so long before it is to stand still
 * longer.
 */
const PATIENCE_MS = 10_000;
/** The first pass sends all of the memory, and the second one what was written meanwhile. */
const USUAL_PASSES = 2;

/**
 * How long a guest may stand still for what is left of it: longer and longer while it writes faster
 * than the link takes it. Pure.
 * @param sinceMs how long its memory has been sent again and again
 */
export function planDowntime(sinceMs: number): number {
  const steps = Math.floor(Math.max(0, sinceMs) / PATIENCE_MS);
  return Math.min(MAX_DOWNTIME_MS, FIRST_DOWNTIME_MS * 2 ** steps);
}

export function isRepeating({ passes }: Pick<SendingProgress, 'passes'>): boolean {
  return passes > USUAL_PASSES;
}

/** Pure. */
export function tellRates({ dirtyRate, sentRate }: SendingProgress, downtimeMs: number): string {
  const rate = (bytes: number): string => `${Math.round(bytes / MIB)} MiB/s`;
  return `the guest writes ${rate(dirtyRate)} into its memory while ${rate(sentRate)} are sent: the allowed pause is now ${downtimeMs} ms, and the guest is slowed down`;
}

/** QEMU's states of a migration that may be under way. */
const UNDER_WAY = ['setup', 'active', 'pre-switchover', 'device', 'cancelling'];
/** QEMU's states of a migration that has ended. */
const OVER = ['completed', 'failed', 'cancelled'];
/** QEMU's states of a guest that stands still for a migration. */
const STANDING = ['inmigrate', 'finish-migrate', 'postmigrate'];

/**
 * Whether one was ever begun: metad may have been told that the guest leaves, and nothing since.
 * Pure.
 */
export function hasBegun({ migration }: Pick<MigrationState, 'migration'>): boolean {
  return migration !== 'none';
}

/**
 * Whether a machine that outlived its daemon may run elsewhere by now, so that the record has to
 * say whose it is. One that was paused for anything else is none of these. Pure.
 * @param kind what it was started for
 */
export function mayBeElsewhere(
  kind: 'run' | 'moving',
  { run, migration, isMirrored }: MigrationState,
): boolean {
  if (kind === 'moving' || isMirrored) return true;
  if (STANDING.includes(run) || UNDER_WAY.includes(migration)) return true;
  // It has arrived, and was about to go on; or it was stopped to be sent, and that has failed.
  return run === 'paused' && OVER.includes(migration);
}

/** What becomes of such a machine. Pure. */
export function judgeSurvivor(
  state: Pick<MigrationState, 'run'>,
  isOwn: boolean,
): 'goes-on' | 'ends' {
  // What never arrived whole is nothing that could go on, whoever has the record.
  return isOwn && state.run !== 'inmigrate' ? 'goes-on' : 'ends';
}
