import type { Schemas } from '../../client/api-client.ts';

type JobEvent = Schemas['JobEvent'];

export interface StageProgress {
  readonly stage: string;
  readonly startedAtMs: number;
  /** Null while it runs. */
  readonly durationMs: number | null;
  readonly summary: string;
}

/** Progress of a job, from its events. */
export interface JobProgress {
  readonly status: string | null;
  readonly stages: readonly StageProgress[];
  /** The last progress of a long transfer; null between transfers. */
  readonly transfer: {
    readonly activity: string;
    readonly doneBytes: number;
    readonly totalBytes: number | null;
    readonly startedAtMs: number;
    readonly firstBytes: number;
    readonly atMs: number;
  } | null;
  readonly lines: readonly string[];
  readonly job: Schemas['JobRecord'] | null;
}

/** Lines that stay in memory. */
const MAX_LINES = 5000;

export const NO_PROGRESS: JobProgress = {
  status: null,
  stages: [],
  transfer: null,
  lines: [],
  job: null,
};

/** Adds an event of a job to its progress. Pure. */
export function addJobEvent(progress: JobProgress, event: JobEvent): JobProgress {
  switch (event.type) {
    case 'status':
      return { ...progress, status: event.status };
    case 'stage-started':
      return {
        ...progress,
        transfer: null,
        stages: [
          ...progress.stages,
          { stage: event.stage, startedAtMs: event.atMs, durationMs: null, summary: '' },
        ],
      };
    case 'stage-finished': {
      const { stage, durationMs, summary, atMs } = event;
      const done = { stage, durationMs, summary, startedAtMs: atMs - durationMs };
      const isKnown = progress.stages.some((each) => each.stage === stage);
      const stages = isKnown
        ? progress.stages.map((each) => (each.stage === stage ? done : each))
        : [...progress.stages, done];
      return { ...progress, transfer: null, stages };
    }
    case 'progress': {
      const { activity, doneBytes, totalBytes, atMs } = event;
      const { transfer } = progress;
      const isSame = transfer?.activity === activity && doneBytes >= transfer.doneBytes;
      const begun = isSame ? transfer : { startedAtMs: atMs, firstBytes: doneBytes };
      const { startedAtMs, firstBytes } = begun;
      return {
        ...progress,
        transfer: { activity, doneBytes, totalBytes, atMs, startedAtMs, firstBytes },
      };
    }
    case 'log':
      return addLines(progress, [event.message]);
    case 'output':
      return addLines(progress, [`[${event.stage}] ${event.line}`]);
    case 'script-output':
      return addLines(progress, event.text.replace(/\n$/, '').split('\n'));
    case 'end':
      return { ...progress, transfer: null, status: event.job.status, job: event.job };
    default:
      // A newer node may send other events.
      return progress;
  }
}

function addLines(progress: JobProgress, lines: readonly string[]): JobProgress {
  return { ...progress, lines: [...progress.lines, ...lines].slice(-MAX_LINES) };
}

/** Bytes per second, and seconds until the end; null if unknown. Pure. */
export function rateOf(transfer: NonNullable<JobProgress['transfer']>): {
  readonly bytesPerS: number | null;
  readonly remainingS: number | null;
} {
  const { doneBytes, firstBytes, totalBytes, atMs, startedAtMs } = transfer;
  const seconds = (atMs - startedAtMs) / 1000;
  if (seconds < 0.5 || doneBytes <= firstBytes) return { bytesPerS: null, remainingS: null };
  const bytesPerS = (doneBytes - firstBytes) / seconds;
  return {
    bytesPerS,
    remainingS: totalBytes === null ? null : (totalBytes - doneBytes) / bytesPerS,
  };
}
