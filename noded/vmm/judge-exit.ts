import type { MachineExitReason } from './machine.ts';

export interface ExitEvidence {
  /** How the process ended; undefined when it was not our child. */
  readonly end: { readonly exitStatus: number | null; readonly signal: string | null } | undefined;
  /** `reason` of QMP's SHUTDOWN event (ShutdownCause in QEMU's qapi/run-state.json). */
  readonly shutdownReason: string | undefined;
  /** Whether the daemon itself has sent it signals. */
  readonly isKilled: boolean;
}

/** A map: the reason is QEMU's word, and may be `constructor`. */
const CAUSES: ReadonlyMap<string | undefined, MachineExitReason> = new Map([
  ['guest-shutdown', 'guest-shutdown'],
  ['guest-reset', 'guest-reboot'],
  ['guest-panic', 'guest-panic'],
  ['host-signal', 'host-request'],
  ['host-qmp-quit', 'host-request'],
  ['host-ui', 'host-request'],
]);

/**
 * A shutdown counts as the guest's only if QEMU then ended properly: else its last writes may be
 * lost.
 */
export function judgeExit(evidence: ExitEvidence): MachineExitReason {
  const { end, shutdownReason, isKilled } = evidence;
  const byGuest = shutdownReason?.startsWith('guest-') === true;
  if (isKilled && !byGuest) return 'host-request';
  const isProper = end === undefined || end.exitStatus === 0;
  if (!isProper) return isKilled ? 'host-request' : 'crashed';
  return CAUSES.get(shutdownReason) ?? 'unknown';
}
