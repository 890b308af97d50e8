import type { Clock } from '#shared/clock/clock.ts';
import type { StageTiming } from '#shared/contract/instance.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import type { JobContext } from './job-handler.ts';
import type { InstallLog } from '../host/install-log.ts';

export interface StageRecorderOptions {
  readonly first: InstallStage;
  readonly clock: Clock;
  readonly context: JobContext;
  readonly onEnter?: (stage: InstallStage) => void;
}

/**
 * Reports the stages of the host to the job and the log, and measures them.
 * INVARIANT: `stage` is the present stage, which a failure names.
 */
export class StageRecorder {
  readonly #options: StageRecorderOptions;
  readonly timings: StageTiming[] = [];
  stage: InstallStage;
  log: InstallLog | undefined;

  constructor(options: StageRecorderOptions) {
    this.#options = options;
    this.stage = options.first;
  }

  openLog(): InstallLog {
    if (this.log === undefined) throw new Error('the log is opened first');
    return this.log;
  }

  enter(stage: InstallStage): void {
    this.stage = stage;
    this.#options.onEnter?.(stage);
  }

  /** @param body returns a summary sentence, with its result if it has one */
  async timed(stage: InstallStage, body: () => Promise<string>): Promise<void>;
  async timed<T>(stage: InstallStage, body: () => Promise<readonly [string, T]>): Promise<T>;
  async timed<T>(
    stage: InstallStage,
    body: () => Promise<string | readonly [string, T]>,
  ): Promise<T | undefined> {
    const { clock, context } = this.#options;
    this.enter(stage);
    context.report.stageStarted(stage);
    const startedAtMs = clock.monotonicMs();
    const answer = await body();
    const [summary, value] = typeof answer === 'string' ? [answer, undefined] : answer;
    const durationMs = Math.round(clock.monotonicMs() - startedAtMs);
    this.timings.push({ stage, durationMs, summary });
    this.log?.append(`== ${stage}: ${summary}`);
    context.report.stageFinished(stage, durationMs, summary);
    context.signal.throwIfAborted();
    return value;
  }
}
