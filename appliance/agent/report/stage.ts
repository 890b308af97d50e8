import type { InstallStage } from '#shared/contract/primitives.ts';

/** Reports of a stage. All text is masked later. */
export interface StageReporter {
  log(line: string, stream?: 'stdout' | 'stderr' | 'agent'): void;
  /** Whether the log refuses further program output. */
  readonly isFull?: () => boolean;
  progress(doneBytes: number, totalBytes: number | null): void;
}

/**
 * One step of an installation. `run` returns a sentence for the log.
 * @throws AppError with the code and hint for the operator
 */
export interface Stage {
  readonly name: InstallStage;
  /** Excludes a cleanup stage after a failure. */
  readonly isOnlyAfterSuccess?: boolean;
  run(reporter: StageReporter): Promise<string>;
}

export interface StageFailure {
  readonly stage: InstallStage;
  readonly error: unknown;
}

export interface StageObserver {
  started(stage: InstallStage): void;
  finished(stage: InstallStage, summary: string): void;
  reporterFor(stage: InstallStage): StageReporter;
}

/**
 * Runs stages in order up to the first failure, then the `cleanup` stages, whose failure counts
 * only when no stage failed before.
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
