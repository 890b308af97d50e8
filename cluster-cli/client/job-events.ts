import { setTimeout as delay } from 'node:timers/promises';
import { jobEvent, type JobEvent } from '#shared/contract/job.ts';
import { AppError, isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/text/lines.ts';
import { CommandFailure } from '../failures/failure.ts';
import type { NodeClient } from './node-client.ts';
import { MAX_LINE_CHARACTERS } from './ask-node.ts';

/**
 * A restart of noded takes seconds; after this long without it, the watcher gives up (the job does
 * not).
 */
const MAX_OUTAGE_MS = 60_000;
const RETRY_MS = 500;

export type WatchedEvent =
  | JobEvent
  /**
   * The connection was lost and is back: the daemon sends the job's events from the start, what was
   * seen is not repeated here.
   */
  | { readonly type: 'reconnecting' };

/**
 * A job's events, each once, until its end. Survives a restart of the daemon.
 * @throws AppError NODED_UNREACHABLE when the daemon stays away, CommandFailure JOB_NOT_FOUND, or
 * the signal's reason.
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
 * Events come in the order of their time: older ones than the last are repetitions, equally old
 * ones are compared.
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

/** The daemon that is asked, or that of the node that runs the job. */
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
