import {
  BOOT_STAGES,
  MAX_BOOT_ERRORS,
  type BootEvent,
  type BootReport,
  type BootResult,
  type BootStage,
} from '#shared/contract/boot-report.ts';

/**
 * What a guest's cloud-init says, event by event, as one report of its present boot. Pure; a guest
 * can say what it likes of itself, in a bounded space.
 */

const NEW_BOOT: BootReport = {
  ...{ status: 'running', stage: null },
  ...{ errors: [], recoverableErrors: [], stages: [] },
};

/** @param before null before the first word */
export function hearBootEvent(before: BootReport | null, event: BootEvent): BootReport {
  const report = before === null || isOfNewBoot(before, event) ? NEW_BOOT : before;
  // The end of the last stage is told after the verdict that it leads to.
  if (report.status !== 'running') return report;
  const entered = { ...report, stage: event.stage };
  if (event.phase === 'start' || event.module === null) return entered;
  const line = `${event.stage}/${event.module}: ${event.description}`;
  if (event.result === 'FAIL') return { ...entered, errors: added(report.errors, line) };
  if (event.result === 'WARN')
    return { ...entered, recoverableErrors: added(report.recoverableErrors, line) };
  return entered;
}

/** The last stage has ended; what it found may still be told by {@link hearBootResult}. */
export function isLastEvent({ stage, module, phase }: BootEvent): boolean {
  return stage === 'modules-final' && module === null && phase === 'finish';
}

/** The verdict of a cloud-init that told its events and nothing else. */
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

/** A guest may be started again from within, while its machine runs on. */
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
