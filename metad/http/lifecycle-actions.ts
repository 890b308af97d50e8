import {
  lifecycleEntry,
  lifecycleEventBatch,
  MAX_LIFECYCLE_EVENTS,
  MAX_LIFECYCLE_EVENTS_BYTES,
  MAX_LIFECYCLE_OUTPUT_BYTES,
  MAX_OUTPUT_TEXT_LENGTH,
} from '#shared/contract/lifecycle.ts';
import { OFFSET_HEADER } from '#shared/contract/metad-control.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { EntryOutput, OutputPiece } from '../channel/entry-output.ts';
import type { EventLog } from '../channel/event-log.ts';
import type { GuestLifecycle } from '../channel/guest-lifecycle.ts';
import { EVENTS_PER_REQUEST_TOKEN, REQUEST_TOKENS_PER_NEWS } from '../config/limits.ts';
import { describeIssue } from '../view/validation-message.ts';
import { queryInteger } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { sendText } from './reply.ts';
import { acknowledge, chargeForTime, isPaid, takeReport } from './take-report.ts';
import { maskOf } from './view-mask.ts';

const TOO_MANY = `(top level): more than ${MAX_LIFECYCLE_EVENTS} events`;
const BATCH = {
  name: 'lifecycle events',
  maxBytes: MAX_LIFECYCLE_EVENTS_BYTES,
  /** An event has six members. */
  values: { max: MAX_LIFECYCLE_EVENTS * 16, refusal: TOO_MANY },
} as const;

/**
 * Takes events of a guest's run lists. With 400 or 409, which name the field, no event of the batch
 * counts.
 */
export async function lifecycleEvents(exchange: Exchange, events: EventLog): Promise<void> {
  await takeReport(exchange, BATCH, (body) => {
    const { instance, response } = exchange;
    const { lifecycle } = instance;
    if (!lifecycle) return sendText(response, 404, 'not found');
    const value = parseJson(body);
    if (value === undefined) return sendText(response, 400, '(top level): not JSON');
    if (Array.isArray(value) && value.length > MAX_LIFECYCLE_EVENTS)
      return sendText(response, 400, TOO_MANY);
    const batch = lifecycleEventBatch.safeParse(value);
    if (!batch.success) return sendText(response, 400, describeIssue(batch.error));
    if (!isPaid(exchange, batch.data.length / EVENTS_PER_REQUEST_TOKEN, 'events')) return;
    const taken = lifecycle.judge(batch.data);
    if ('refused' in taken)
      return sendText(response, 409, `${taken.index}.${taken.field}: ${taken.refused}`);
    instance.owe(REQUEST_TOKENS_PER_NEWS * taken.filter(({ isNews }) => isNews).length);
    for (const one of taken) {
      const { event, progress } = one;
      if (event.type === 'finished') tellRest(exchange, events, lifecycle, event.entry);
      lifecycle.accept(one);
      if (one.isNews) events.append(instance.view.uuid, { type: 'lifecycle', event, progress });
    }
    return acknowledge(exchange, events);
  });
}

function tellRest(
  exchange: Exchange,
  events: EventLog,
  lifecycle: GuestLifecycle,
  entry: string,
): void {
  const output = lifecycle.heldOutputOf(entry);
  if (output) tell(exchange, events, lifecycle, output, (mask) => output.flush(mask));
}

function tell(
  exchange: Exchange,
  events: EventLog,
  lifecycle: GuestLifecycle,
  { entry }: EntryOutput,
  take: (mask: (line: string) => string) => readonly OutputPiece[],
): void {
  const { instance } = exchange;
  // With the end of its line it is at most one piece.
  const pieces = chargeForTime(exchange, () => take(maskOf(instance, MAX_OUTPUT_TEXT_LENGTH - 1)));
  const { run } = lifecycle;
  for (const piece of pieces)
    events.append(instance.view.uuid, { type: 'lifecycle-output', run, entry, ...piece });
}

const OUTPUT = {
  name: 'lifecycle output',
  maxBytes: MAX_LIFECYCLE_OUTPUT_BYTES,
  values: null,
} as const;

/**
 * Takes a part of a script's output, which starts at `offset`. Bytes before the expected offset are
 * dropped.
 */
export async function lifecycleOutput(exchange: Exchange, events: EventLog): Promise<void> {
  const { query, response } = exchange;
  const offset = queryInteger(query, 'offset', Number.MAX_SAFE_INTEGER);
  if (offset === undefined || offset === null)
    return sendText(response, 400, 'offset: not a whole number');
  const entry = lifecycleEntry.safeParse(query?.get('entry'));
  if (!entry.success) return sendText(response, 400, 'entry: not a run list entry');
  await takeReport(exchange, OUTPUT, (body) => {
    const { lifecycle } = exchange.instance;
    if (!lifecycle) return sendText(response, 404, 'not found');
    const output = lifecycle.outputOf(entry.data);
    if (!output) return sendText(response, 409, `entry: ${entry.data} is not running`);
    tell(exchange, events, lifecycle, output, (mask) => output.push(offset, body, mask));
    return acknowledge(exchange, events, [OFFSET_HEADER, String(output.end)]);
  });
}
