import { countJsonValues } from '#shared/json/count-values.ts';
import type { EventLog } from '../channel/event-log.ts';
import {
  HAND_OVER_LIMIT_MS,
  REPORT_BYTES_PER_REQUEST_TOKEN,
  RETRY_AFTER_S,
} from '../config/limits.ts';
import type { Exchange } from './exchange.ts';
import { bodyOf } from './request-body.ts';
import { sendEmpty, sendText } from './reply.ts';

/** What a guest tells of itself in a body that is parsed and kept. */
export interface ReportKind {
  /** One of a kind at a time. Different programs of a guest tell different kinds. */
  readonly name:
    | 'install events'
    | 'boot event'
    | 'boot status'
    | 'lifecycle events'
    | 'lifecycle output'
    | 'ready';
  readonly maxBytes: number;
  /** Null: it is no JSON. */
  readonly values: { readonly max: number; readonly refusal: string } | null;
}

/**
 * Reads a report within what its guest may have parsed. One at a time: what of several is held, and
 * parsed in one turn, would be bounded by the guest's connections alone. Its bytes are paid for as
 * requests are.
 * @param take answers the request; called in the turn in which the body is whole, and the report is
 * on its way until what it returns is over
 */
export async function takeReport(
  exchange: Exchange,
  kind: ReportKind,
  take: (body: Buffer) => Promise<void> | void,
): Promise<void> {
  const { reporting } = exchange.instance;
  if (reporting.has(kind.name))
    return refuse(exchange, 'another report of this kind is in progress');
  reporting.add(kind.name);
  try {
    const body = await bodyOf(exchange, kind.maxBytes);
    if (!body) return;
    if (!isPaid(exchange, body.length / REPORT_BYTES_PER_REQUEST_TOKEN, 'bytes')) return;
    const { values } = kind;
    // Before anything is made of it: a hundred thousand empty objects take the parser, and then the
    // collector, the time of a hundred requests.
    if (values && countJsonValues(body, values.max) > values.max)
      return sendText(exchange.response, 400, values.refusal);
    await take(body);
  } finally {
    reporting.delete(kind.name);
  }
}

/** Says that a report is taken, once a kill of this process could not lose it any more. */
export async function acknowledge(
  { response }: Exchange,
  events: EventLog,
  headers: readonly string[] = [],
): Promise<void> {
  await events.untilHandedOver(HAND_OVER_LIMIT_MS);
  sendEmpty(response, 204, headers);
}

/**
 * Charges for what a report turned out to cost.
 * @param cost in usual requests
 * @returns false when the request was refused instead
 */
export function isPaid(exchange: Exchange, cost: number, what: string): boolean {
  if (exchange.instance.charge(Math.floor(cost)) === 0) return true;
  refuse(exchange, `too many ${what}`);
  return false;
}

/**
 * Does work whose time the guest's own values decide, and charges for it afterwards, be it a debt:
 * a millisecond of the processor's costs as much as a request.
 */
export function chargeForTime<T>({ instance }: Exchange, work: () => T): T {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  instance.charge(Math.floor((user + system) / 1000));
  return result;
}

function refuse({ response }: Exchange, reason: string): void {
  sendText(response, 429, reason, ['Retry-After', String(RETRY_AFTER_S)]);
}
