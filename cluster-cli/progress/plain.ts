import type { JobEvent } from '#shared/contract/job.ts';
import { formatBytes, formatDuration, formatEta } from '../render/format.ts';
import { sanitizeLine } from '../render/sanitize.ts';
import { type Activity, estimateRemainingMs, type JobProgress } from './state.ts';

/** Shortest interval between lines about an activity in a log file or pipe. */
const MIN_INTERVAL_MS = 5000;

/**
 * Returns a function that gives the lines for an event, for a log file or pipe. It records the time
 * of each activity's last line.
 * INVARIANT: stage begins, stage ends and log messages are never dropped. Measurements are, down to
 * one in five seconds.
 */
export function createPlainReporter(): (
  event: JobEvent,
  progress: JobProgress,
) => readonly string[] {
  const reportedAtMs = new Map<string, number>();
  let lastStatus = '';

  return (event, progress) => {
    switch (event.type) {
      case 'status': {
        const text = describeStatus(progress);
        if (text === lastStatus || text === '') return [];
        lastStatus = text;
        return [text];
      }
      case 'log':
        return [`${event.level === 'warn' ? 'warning: ' : ''}${sanitizeLine(event.message)}`];
      case 'stage-started':
        reportedAtMs.set(event.stage, event.atMs);
        return [`${event.stage}: started`];
      case 'stage-finished':
        return [describeFinished(event)];
      case 'progress':
        return reportMeasurement(event, progress, reportedAtMs);
      case 'output':
      case 'script-output':
      case 'end':
        return [];
    }
  };
}

function reportMeasurement(
  event: Extract<JobEvent, { type: 'progress' }>,
  progress: JobProgress,
  reportedAtMs: Map<string, number>,
): readonly string[] {
  const name = sanitizeLine(event.activity);
  const activity = progress.activities.find((each) => each.name === event.activity);
  if (!activity?.isStage && event.doneBytes === event.totalBytes) {
    reportedAtMs.delete(event.activity);
    return [`${name}: ${formatBytes(event.doneBytes)}, done`];
  }
  const last = reportedAtMs.get(event.activity) ?? -Infinity;
  if (!activity || event.atMs - last < MIN_INTERVAL_MS) return [];
  reportedAtMs.set(event.activity, event.atMs);
  return [`${name}: ${describeMeasurement(activity)}`];
}

/** Returns why the job waits, or that it is being canceled; empty for a running job. */
export function describeStatus(progress: JobProgress): string {
  const { jobId, status, waitsFor, waitsBecause } = progress;
  if (status === 'canceling') return `job ${jobId} is being canceled`;
  if (status !== 'waiting' && status !== 'queued') return '';
  if (waitsBecause !== null) return `job ${jobId} waits for ${sanitizeLine(waitsBecause)}`;
  if (waitsFor.length > 0) {
    return `job ${jobId} waits for job ${waitsFor.join(', ')}`;
  }
  return '';
}

function describeFinished(event: Extract<JobEvent, { type: 'stage-finished' }>): string {
  const summary = event.summary === '' ? '' : `: ${sanitizeLine(event.summary)}`;
  return `${event.stage}: done in ${formatDuration(event.durationMs)}${summary}`;
}

/** Returns the known parts of `45 %, 412 MiB of 912 MiB, 38 MiB/s, 0:13 left`. */
function describeMeasurement(activity: Activity): string {
  const { doneBytes, totalBytes, bytesPerSecond } = activity;
  const remainingMs = estimateRemainingMs(activity);
  const parts = [
    ...(totalBytes ? [`${Math.floor((100 * doneBytes) / totalBytes)} %`] : []),
    totalBytes === null
      ? formatBytes(doneBytes)
      : `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`,
    ...(bytesPerSecond === null ? [] : [`${formatBytes(bytesPerSecond)}/s`]),
    ...(remainingMs === null ? [] : [`${formatEta(remainingMs)} left`]),
  ];
  return parts.join(', ');
}
