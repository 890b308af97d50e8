import { setTimeout as delay } from 'node:timers/promises';
import { jobEvent, type JobEvent } from '#shared/contract/job.ts';
import { AppError, isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/text/lines.ts';
import { CommandFailure } from '../failures/failure.ts';
import type { NodeClient } from './node-client.ts';
import { MAX_LINE_CHARACTERS } from './ask-node.ts';

/** A restart of noded takes seconds. After this time the watcher gives up; the job continues. */
const MAX_OUTAGE_MS = 60_000;
const RETRY_MS = 500;

export type WatchedEvent =
  | JobEvent
  /**
   * The connection was lost and restored. The daemon repeats the job's events, and this stream
   * drops known ones.
   */
  | { readonly type: 'reconnecting' };

/**
 * Yields a job's events, each once, until its end. Survives a restart of the daemon.
 * @throws AppError NODED_UNREACHABLE after MAX_OUTAGE_MS, CommandFailure JOB_NOT_FOUND, or the
 * signal's reason
 */
export async function* watchJobEvents(
  client: NodeClient,
  id: number,
  signal?: AbortSignal,
): AsyncGenerator<WatchedEvent> {
  const seen = createSeenFilter();
  let lostAtMs: number | undefined;
  let lastError: unknown;
  for (;;) {
    try {
      for await (const event of readEvents(client, id, signal)) {
        if (seen(event)) continue;
        lostAtMs = undefined;
        yield event;
        if (event.type === 'end') return;
      }
      lastError = undefined;
    } catch (error) {
      signal?.throwIfAborted();
      const isNeverReached = lostAtMs === undefined && isUnreachable(error);
      if (!isConnectionLoss(error) || isNeverReached) throw error;
      lastError = error;
    }
    lostAtMs ??= performance.now();
    if (performance.now() - lostAtMs > MAX_OUTAGE_MS) throw withWayBack(lastError, id);
    yield { type: 'reconnecting' };
    await delay(RETRY_MS, undefined, signal && { signal });
  }
}

async function* readEvents(
  client: NodeClient,
  id: number,
  signal?: AbortSignal,
): AsyncGenerator<JobEvent> {
  const response = await client.open('GET /v1/jobs/{id}/events', { id, signal });
  for await (const line of readLines(response, MAX_LINE_CHARACTERS)) yield parseEvent(line);
}

function parseEvent(line: string): JobEvent {
  const parsed = jobEvent.safeParse(parseJson(line));
  if (parsed.success) return parsed.data;
  throw new AppError('INTERNAL', 'unexpected event of the job', {
    hint: 'The running gnt-noded has another version: systemctl restart gnt-noded',
  });
}

/**
 * Returns a filter of repeated events. Events are ordered by time: older events than the last are
 * repetitions, and events of the same time are compared.
 */
function createSeenFilter(): (event: JobEvent) => boolean {
  let lastAtMs = -1;
  let atLast = new Set<string>();
  return (event) => {
    if (event.type === 'end') return false;
    const text = JSON.stringify(event);
    if (event.atMs < lastAtMs || (event.atMs === lastAtMs && atLast.has(text))) return true;
    if (event.atMs > lastAtMs) atLast = new Set();
    lastAtMs = event.atMs;
    atLast.add(text);
    return false;
  };
}

const LOSSES = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

export function isConnectionLoss(error: unknown): boolean {
  return isUnreachable(error) || LOSSES.has(systemCodeOf(error) ?? '');
}

/** Tells whether the local daemon, or the daemon of the job's node, is unreachable. */
function isUnreachable(error: unknown): boolean {
  return (
    isAppError(error, 'NODED_UNREACHABLE') ||
    (error instanceof CommandFailure && error.code === 'NODE_UNREACHABLE')
  );
}

function withWayBack(error: unknown, id: number): AppError {
  return new AppError(
    'NODED_UNREACHABLE',
    `the node daemon stopped responding while the command watched job ${id}`,
    {
      hint: `systemctl start gnt-noded, then gnt-job watch ${id}`,
      cause: error,
    },
  );
}
