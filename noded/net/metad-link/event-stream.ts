import type { IncomingMessage } from 'node:http';
import { pause } from '#shared/abort/until.ts';
import { type MetadEvent, metadEvent } from '#shared/contract/metad-control.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import { readLines } from '#shared/text/lines.ts';
import type { ControlChannel } from './control-request.ts';
import { askStatus } from './metad-client.ts';

/**
 * Limit of one event: its texts have at most 9 KiB, and JSON may escape a character with six. A
 * longer event is cut and then dropped as invalid. An error would restart the stream at the same
 * event.
 */
const MAX_LINE_CHARACTERS = 64 * 1024;
const RECONNECT_DELAY_MS = 250;
/** metad sends an empty line every 15 s. */
const SILENCE_MS = 60_000;

export interface EventOptions {
  readonly signal: AbortSignal;
  /** Skips events up to this sequence. */
  readonly after?: number;
}

/**
 * Yields metad's events until the signal aborts. The start time shows a new metad, which counts
 * from 1 again. Invalid lines are dropped and logged, so that a guest's text cannot stop the node.
 */
export async function* readEvents(
  channel: ControlChannel,
  logger: Logger,
  options: EventOptions,
): AsyncGenerator<MetadEvent, void> {
  const { signal } = options;
  let after = options.after ?? 0;
  let metadStartedAtMs: number | undefined;
  while (!signal.aborted) {
    try {
      const { startedAtMs } = await askStatus(channel);
      if (metadStartedAtMs !== undefined && metadStartedAtMs !== startedAtMs) after = 0;
      metadStartedAtMs = startedAtMs;
      const path = `/v1/events?after=${after}`;
      const answer = await channel.stream({ method: 'GET', path, timeoutMs: SILENCE_MS, signal });
      for await (const event of parseEvents(answer, logger)) {
        if (event.sequence <= after) continue;
        after = event.sequence;
        yield event;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isAppError(error)) logger.debug('metad.events-cut', { reason: messageOf(error) });
    }
    await pause(RECONNECT_DELAY_MS, signal);
  }
}

async function* parseEvents(
  answer: IncomingMessage,
  logger: Logger,
): AsyncGenerator<MetadEvent, void> {
  if (answer.statusCode !== 200) {
    answer.resume();
    throw new Error(`status ${answer.statusCode ?? 0}`);
  }
  for await (const line of readLines(answer, MAX_LINE_CHARACTERS, 'cut')) {
    const event = parseEvent(line, logger);
    if (event) yield event;
  }
}

/**
 * Logs the place of an error without the text, which comes from a guest and may contain a secret.
 */
function parseEvent(line: string, logger: Logger): MetadEvent | undefined {
  const drop = (reason: string): undefined =>
    void logger.warn('metad.bad-event', { reason, length: line.length });
  const value = parseJson(line);
  if (value === undefined) return drop('not JSON');
  const parsed = metadEvent.safeParse(value);
  if (parsed.success) return parsed.data;
  return drop(parsed.error.issues.map(({ path, code }) => `${path.join('.')}: ${code}`).join('; '));
}
