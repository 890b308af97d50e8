import type { JobEvent, JobRecord, JobStatus } from '#shared/contract/job.ts';

/** Progress of a stage of the installation, or of other long work of the job. */
export interface Activity {
  readonly name: string;
  readonly isStage: boolean;
  readonly startedAtMs: number;
  readonly doneBytes: number;
  /** Null without progress, or if the total is unknown. */
  readonly totalBytes: number | null;
  /** Smoothed; null before the second measurement. */
  readonly bytesPerSecond: number | null;
  /** Last measurement of the rate. */
  readonly measured: { readonly atMs: number; readonly doneBytes: number } | null;
}

/** A watcher's state of a job after some of its events. */
export interface JobProgress {
  readonly jobId: number;
  readonly status: JobStatus;
  readonly waitsFor: readonly number[];
  /** Reason to wait other than locks. */
  readonly waitsBecause: string | null;
  /** Running activities in the order of their start. */
  readonly activities: readonly Activity[];
  /** Last line of output in the present stage. */
  readonly output: string | null;
  readonly job: JobRecord | null;
}

/** Weight of the newest measurement in the rate: it follows a change within about five of them. */
const RATE_WEIGHT = 0.3;
/** Measurements closer together than this are noise. */
const MIN_MEASURE_MS = 200;

export function startProgress(jobId: number): JobProgress {
  return {
    jobId,
    status: 'queued',
    waitsFor: [],
    waitsBecause: null,
    activities: [],
    output: null,
    job: null,
  };
}

export function applyJobEvent(progress: JobProgress, event: JobEvent): JobProgress {
  switch (event.type) {
    case 'status':
      return {
        ...progress,
        status: event.status,
        waitsFor: event.waitsFor,
        waitsBecause: event.waitsBecause ?? null,
      };
    case 'log':
    case 'script-output':
      return progress;
    case 'stage-started':
      return {
        ...progress,
        output: null,
        activities: [
          ...progress.activities.filter(({ name }) => name !== event.stage),
          startActivity(event.stage, event.atMs, true),
        ],
      };
    case 'stage-finished':
      return {
        ...progress,
        output: null,
        activities: progress.activities.filter(({ name }) => name !== event.stage),
      };
    case 'progress':
      return applyMeasurement(progress, event);
    case 'output':
      return { ...progress, output: event.line };
    case 'end':
      return {
        ...progress,
        status: event.job.status,
        activities: [],
        output: null,
        job: event.job,
      };
  }
}

function startActivity(name: string, atMs: number, isStage: boolean): Activity {
  return {
    name,
    isStage,
    startedAtMs: atMs,
    doneBytes: 0,
    totalBytes: null,
    bytesPerSecond: null,
    measured: null,
  };
}

function applyMeasurement(
  progress: JobProgress,
  event: Extract<JobEvent, { type: 'progress' }>,
): JobProgress {
  const known = progress.activities.find(({ name }) => name === event.activity);
  const activity = measure(known ?? startActivity(event.activity, event.atMs, false), event);
  const isComplete = event.totalBytes !== null && event.doneBytes >= event.totalBytes;
  // A stage ends with its own event; other work ends when it is complete.
  const kept = isComplete && !activity.isStage ? [] : [activity];
  if (!known) return { ...progress, activities: [...progress.activities, ...kept] };
  return {
    ...progress,
    activities: progress.activities.flatMap((each) => (each === known ? kept : [each])),
  };
}

function measure(activity: Activity, event: Extract<JobEvent, { type: 'progress' }>): Activity {
  const next = { ...activity, doneBytes: event.doneBytes, totalBytes: event.totalBytes };
  const here = { atMs: event.atMs, doneBytes: event.doneBytes };
  const { measured } = activity;
  // The count decreases when a download starts again.
  if (!measured || here.doneBytes < measured.doneBytes) {
    return { ...next, measured: here, bytesPerSecond: null };
  }
  const elapsedMs = here.atMs - measured.atMs;
  if (elapsedMs < MIN_MEASURE_MS) return next;
  const newest = (here.doneBytes - measured.doneBytes) / (elapsedMs / 1000);
  const smoothed =
    activity.bytesPerSecond === null
      ? newest
      : activity.bytesPerSecond + RATE_WEIGHT * (newest - activity.bytesPerSecond);
  return { ...next, measured: here, bytesPerSecond: smoothed };
}

/** Returns the milliseconds until the activity is complete, or null if unknown. */
export function estimateRemainingMs(activity: Activity): number | null {
  const { totalBytes, doneBytes, bytesPerSecond } = activity;
  if (totalBytes === null || bytesPerSecond === null || bytesPerSecond < 1) return null;
  return ((totalBytes - doneBytes) / bytesPerSecond) * 1000;
}
