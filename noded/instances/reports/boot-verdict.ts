import {
  BOOT_STAGES,
  MAX_BOOT_ERRORS,
  type BootEvent,
  type BootReport,
  type BootResult,
  type BootStage,
} from '#shared/contract/boot-report.ts';

/**
 * Collects cloud-init's events into one report of the guest's present boot. Pure. The guest
 * controls the content, so its size is bounded.
 */

const NEW_BOOT: BootReport = {
  ...{ status: 'running', stage: null },
  ...{ errors: [], recoverableErrors: [], stages: [] },
};

/** @param before null before the first event */
export function hearBootEvent(before: BootReport | null, event: BootEvent): BootReport {
  const report = before === null || isOfNewBoot(before, event) ? NEW_BOOT : before;
  // The finish event of the last stage arrives after the verdict.
  if (report.status !== 'running') return report;
  const entered = { ...report, stage: event.stage };
  if (event.phase === 'start' || event.module === null) return entered;
  const line = `${event.stage}/${event.module}: ${event.description}`;
  if (event.result === 'FAIL') return { ...entered, errors: added(report.errors, line) };
  if (event.result === 'WARN')
    return { ...entered, recoverableErrors: added(report.recoverableErrors, line) };
  return entered;
}

/**
 * Returns true once the last stage has ended. {@link hearBootResult} may still report its result.
 */
export function isLastEvent({ stage, module, phase }: BootEvent): boolean {
  return stage === 'modules-final' && module === null && phase === 'finish';
}

/** Returns the verdict for a cloud-init that reported only events. */
export function judgeEvents(report: BootReport): BootReport {
  return report.status === 'running'
    ? { ...report, stage: null, status: verdictOf(report) }
    : report;
}

export function hearBootResult(result: BootResult): BootReport {
  return { ...result, status: result.stage === null ? verdictOf(result) : 'running' };
}

/** Judges as `cloud-init status` does. */
function verdictOf(
  result: Pick<BootResult, 'errors' | 'recoverableErrors'>,
): 'done' | 'degraded' | 'error' {
  if (result.errors.length > 0) return 'error';
  return result.recoverableErrors.length > 0 ? 'degraded' : 'done';
}

/** A guest may reboot from within while its QEMU process keeps running. */
function isOfNewBoot(report: BootReport, { phase, stage }: BootEvent): boolean {
  if (phase !== 'start') return false;
  return report.status !== 'running' || orderOf(stage) < orderOf(report.stage);
}

function orderOf(stage: BootStage | null): number {
  return stage === null ? -1 : BOOT_STAGES.indexOf(stage);
}

function added(lines: readonly string[], line: string): string[] {
  return [...lines, line].slice(0, MAX_BOOT_ERRORS);
}
