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

/** A report of a guest about itself, in a body that is parsed and stored. */
export interface ReportKind {
  /**
   * An instance may send one report of a kind at a time. Different programs of a guest send
   * different kinds.
   */
  readonly name:
    | 'install events'
    | 'boot event'
    | 'boot status'
    | 'lifecycle events'
    | 'lifecycle output'
    | 'ready'
    | 'guest attribute';
  readonly maxBytes: number;
  /** Null for a body that is not JSON. */
  readonly values: { readonly max: number; readonly refusal: string } | null;
}

/**
 * Reads a report within the parsing limits of its guest, one of a kind at a time. Otherwise only
 * the guest's connections would bound the memory and the time in one turn. Its bytes cost as much
 * as requests.
 * @param take answers the request, in the turn in which the body is complete; the report is in
 * progress until its promise settles
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
    // Counted before parsing: a hundred thousand empty objects take the parser, and then the
    // collector, the time of a hundred requests.
    if (values && countJsonValues(body, values.max) > values.max)
      return sendText(exchange.response, 400, values.refusal);
    await take(body);
  } finally {
    reporting.delete(kind.name);
  }
}

/** Acknowledges a report once a kill of this process cannot lose it. */
export async function acknowledge(
  { response }: Exchange,
  events: EventLog,
  headers: readonly string[] = [],
): Promise<void> {
  await events.untilHandedOver(HAND_OVER_LIMIT_MS);
  sendEmpty(response, 204, headers);
}

/**
 * Charges for the actual cost of a report.
 * @param cost in usual requests
 * @returns false when the request was refused instead
 */
export function isPaid(exchange: Exchange, cost: number, what: string): boolean {
  if (exchange.instance.charge(Math.floor(cost)) === 0) return true;
  refuse(exchange, `too many ${what}`);
  return false;
}

/**
 * Charges afterwards for work whose time depends on the guest's values, even into debt: a
 * millisecond of CPU time costs as much as one request.
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
