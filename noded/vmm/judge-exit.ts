import type { MachineExitReason } from './machine.ts';

export interface ExitEvidence {
  /** Status of the process; undefined when it was no child of this process. */
  readonly end: { readonly exitStatus: number | null; readonly signal: string | null } | undefined;
  /** `reason` of QMP's SHUTDOWN event (ShutdownCause in QEMU's qapi/run-state.json). */
  readonly shutdownReason: string | undefined;
  /** The daemon itself sent a signal. */
  readonly isKilled: boolean;
}

/** A map, because QEMU's reason could be `constructor`. */
const CAUSES: ReadonlyMap<string | undefined, MachineExitReason> = new Map([
  ['guest-shutdown', 'guest-shutdown'],
  ['guest-reset', 'guest-reboot'],
  ['guest-panic', 'guest-panic'],
  ['host-signal', 'host-request'],
  ['host-qmp-quit', 'host-request'],
  ['host-ui', 'host-request'],
]);

/**
 * Returns a guest's shutdown only if QEMU then exited with status 0. Otherwise its last writes may
 * be lost.
 */
export function judgeExit(evidence: ExitEvidence): MachineExitReason {
  const { end, shutdownReason, isKilled } = evidence;
  const byGuest = shutdownReason?.startsWith('guest-') === true;
  if (isKilled && !byGuest) return 'host-request';
  const isProper = end === undefined || end.exitStatus === 0;
  if (!isProper) return isKilled ? 'host-request' : 'crashed';
  return CAUSES.get(shutdownReason) ?? 'unknown';
}
