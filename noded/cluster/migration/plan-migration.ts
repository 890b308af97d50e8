import { MIB } from '#shared/units/bytes.ts';
import type { MigrationState, SendingProgress } from '../../vmm/machine-migration.ts';

/** Allowed pause of the guest at first, and at most. */
const FIRST_DOWNTIME_MS = 300;
const MAX_DOWNTIME_MS = 9600;
/** Time between two increases for a guest that writes as fast as its memory is sent. */
const PATIENCE_MS = 10_000;
/** The first pass sends all memory, the second one the changes meanwhile. */
const USUAL_PASSES = 2;

/**
 * Returns the allowed pause of the guest. It doubles while the guest writes faster than the link
 * sends.
 * @param sinceMs time since the third pass
 */
export function planDowntime(sinceMs: number): number {
  const steps = Math.floor(Math.max(0, sinceMs) / PATIENCE_MS);
  return Math.min(MAX_DOWNTIME_MS, FIRST_DOWNTIME_MS * 2 ** steps);
}

export function isRepeating({ passes }: Pick<SendingProgress, 'passes'>): boolean {
  return passes > USUAL_PASSES;
}

export function tellRates({ dirtyRate, sentRate }: SendingProgress, downtimeMs: number): string {
  const rate = (bytes: number): string => `${Math.round(bytes / MIB)} MiB/s`;
  return `the guest writes ${rate(dirtyRate)} into its memory while ${rate(sentRate)} are sent: the allowed pause is now ${downtimeMs} ms, and the guest is slowed down`;
}

/** QEMU's states of a possibly active migration. */
const UNDER_WAY = ['setup', 'active', 'pre-switchover', 'device', 'cancelling'];
/** QEMU's states of an ended migration. */
const OVER = ['completed', 'failed', 'cancelled'];
/** QEMU's states of a guest that is paused for a migration. */
const STANDING = ['inmigrate', 'finish-migrate', 'postmigrate'];

/**
 * Returns whether a migration was started. Without one, metad may still believe that the guest
 * leaves.
 */
export function hasBegun({ migration }: Pick<MigrationState, 'migration'>): boolean {
  return migration !== 'none';
}

/**
 * Returns whether an adopted guest may run elsewhere, so that the record must decide. A guest that
 * was paused for another reason is not meant.
 * @param kind purpose of the QEMU process
 */
export function mayBeElsewhere(
  kind: 'run' | 'moving',
  { run, migration, isMirrored }: MigrationState,
): boolean {
  if (kind === 'moving' || isMirrored) return true;
  if (STANDING.includes(run) || UNDER_WAY.includes(migration)) return true;
  // It arrived and was about to continue, or sending it failed while it was paused.
  return run === 'paused' && OVER.includes(migration);
}

export function judgeSurvivor(
  state: Pick<MigrationState, 'run'>,
  isOwn: boolean,
): 'goes-on' | 'ends' {
  // A partly received guest cannot continue, whatever the record says.
  return isOwn && state.run !== 'inmigrate' ? 'goes-on' : 'ends';
}
