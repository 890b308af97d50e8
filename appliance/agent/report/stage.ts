import type { InstallStage } from '#shared/contract/primitives.ts';

/** What a stage may do to be heard. Text is masked behind these. */
export interface StageReporter {
  /** A line for the install log. */
  log(line: string, stream?: 'stdout' | 'stderr' | 'agent'): void;
  /** Whether the log takes nothing more of what programs print. */
  readonly isFull?: () => boolean;
  progress(doneBytes: number, totalBytes: number | null): void;
}

/**
 * One step of an installation. `run` returns a sentence for the reader: what was found or done.
 * @throws AppError with the code and hint that the operator will see
 */
export interface Stage {
  readonly name: InstallStage;
  /** Stages that clean up run after a failure too, unless this says otherwise. */
  readonly isOnlyAfterSuccess?: boolean;
  run(reporter: StageReporter): Promise<string>;
}

export interface StageFailure {
  readonly stage: InstallStage;
  readonly error: unknown;
}

/** Told about each stage as it happens. */
export interface StageObserver {
  started(stage: InstallStage): void;
  finished(stage: InstallStage, summary: string): void;
  reporterFor(stage: InstallStage): StageReporter;
}

/**
 * Runs stages in order and stops at the first that fails; `cleanup` stages run in any case, and
 * their failure counts only when nothing failed before.
 * @returns the failure, or null
 */
export async function runStages(
  stages: readonly Stage[],
  cleanup: readonly Stage[],
  observer: StageObserver,
): Promise<StageFailure | null> {
  let failure = await runUntilFailure(stages, observer);
  for (const stage of cleanup) {
    if (failure && stage.isOnlyAfterSuccess === true) continue;
    const later = await runUntilFailure([stage], observer);
    failure ??= later;
  }
  return failure;
}

async function runUntilFailure(
  stages: readonly Stage[],
  observer: StageObserver,
): Promise<StageFailure | null> {
  for (const stage of stages) {
    observer.started(stage.name);
    try {
      observer.finished(stage.name, await stage.run(observer.reporterFor(stage.name)));
    } catch (error) {
      return { stage: stage.name, error };
    }
  }
  return null;
}
