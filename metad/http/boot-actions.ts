import { z } from 'zod';
import {
  BOOT_STAGES,
  MAX_BOOT_ERROR_LENGTH,
  MAX_BOOT_ERRORS,
  bootStage,
  type BootEvent,
  type BootResult,
  type BootStage,
} from '#shared/contract/boot-report.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { EventLog } from '../channel/event-log.ts';
import {
  MAX_BOOT_EVENT_BYTES,
  MAX_BOOT_EVENT_VALUES,
  MAX_BOOT_STATUS_BYTES,
  MAX_BOOT_STATUS_VALUES,
} from '../config/limits.ts';
import type { Exchange } from './exchange.ts';
import { sendText } from './reply.ts';
import { acknowledge, chargeForTime, isPaid, takeReport } from './take-report.ts';
import { maskOf } from './view-mask.ts';

/** cloud-init's webhook (cloudinit/reporting/handlers.py); other members are ignored. */
const webhookEvent = z.object({
  event_type: z.enum(['start', 'finish']),
  name: z.string().max(256),
  description: z.string().default(''),
  result: z.enum(['SUCCESS', 'WARN', 'FAIL']).optional(),
});

const EVENT_REFUSAL = 'not a cloud-init event';
const EVENT = {
  name: 'boot event',
  maxBytes: MAX_BOOT_EVENT_BYTES,
  values: { max: MAX_BOOT_EVENT_VALUES, refusal: EVENT_REFUSAL },
} as const;

/**
 * Takes one event of cloud-init's reporting webhook. Events of other programs are accepted and
 * dropped: a refusal would put a warning into the guest's log.
 */
export async function bootEvents(exchange: Exchange, events: EventLog): Promise<void> {
  await takeReport(exchange, EVENT, (body) => {
    const given = webhookEvent.safeParse(parseJson(body));
    if (!given.success) return sendText(exchange.response, 400, EVENT_REFUSAL);
    const mask = maskOf(exchange.instance, MAX_BOOT_ERROR_LENGTH);
    const event = chargeForTime(exchange, () => readEvent(given.data, mask));
    if (event) events.append(exchange.instance.view.uuid, { type: 'boot', event });
    return acknowledge(exchange, events);
  });
}

function readEvent(
  given: z.infer<typeof webhookEvent>,
  mask: (text: string) => string,
): BootEvent | null {
  const [name = '', module] = given.name.split('/', 2);
  const stage = bootStage.safeParse(name);
  if (!stage.success) return null;
  return {
    stage: stage.data,
    module: module === undefined ? null : mask(module).slice(0, 128),
    phase: given.event_type,
    result: given.result ?? null,
    description: mask(given.description),
  };
}

const moment = z.number().nonnegative().nullish();
/** The first errors; zod does not check the rest. */
const texts = z
  .preprocess(
    (value) => (Array.isArray(value) ? value.slice(0, MAX_BOOT_ERRORS) : value),
    z.array(z.string()),
  )
  .default([]);
const statusStage = z.object({
  start: moment,
  finished: moment,
  errors: texts,
  /** By level of the log line, since cloud-init 23.4. */
  recoverable_errors: z.preprocess(firstLevels, z.record(z.string().max(32), texts)).default({}),
});

/** Python's logging has five levels, cloud-init adds one. */
const MAX_LEVELS = 16;

function firstLevels(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).slice(0, MAX_LEVELS));
}

const statusFile = z.object({ v1: z.record(z.string(), z.unknown()) });
/** Names of the stages in that file, in the order of BOOT_STAGES. */
const FILE_STAGES = ['init-local', 'init', 'modules-config', 'modules-final'] as const;

const STATUS_REFUSAL = 'not a cloud-init status file';
const STATUS = {
  name: 'boot status',
  maxBytes: MAX_BOOT_STATUS_BYTES,
  values: { max: MAX_BOOT_STATUS_VALUES, refusal: STATUS_REFUSAL },
} as const;

/** Takes cloud-init's status file, which a guest posts during the boot or after it. */
export async function bootStatus(exchange: Exchange, events: EventLog): Promise<void> {
  await takeReport(exchange, STATUS, (body) => {
    const file = statusFile.safeParse(parseJson(body));
    if (!file.success) return sendText(exchange.response, 400, STATUS_REFUSAL);
    const read = readStatus(file.data.v1);
    if (!isPaid(exchange, read.errors.length + read.recoverableErrors.length, 'errors')) return;
    const mask = maskOf(exchange.instance, MAX_BOOT_ERROR_LENGTH);
    const result = chargeForTime(exchange, () => ({
      ...read,
      errors: read.errors.map(mask),
      recoverableErrors: read.recoverableErrors.map(mask),
    }));
    events.append(exchange.instance.view.uuid, { type: 'boot-result', result });
    return acknowledge(exchange, events);
  });
}

function readStatus(file: Readonly<Record<string, unknown>>): BootResult {
  const result: BootResult = {
    stage: stageOf(file),
    errors: [],
    recoverableErrors: [],
    stages: [],
  };
  for (const [index, name] of BOOT_STAGES.entries()) {
    const read = statusStage.safeParse(file[FILE_STAGES[index] ?? name]);
    if (!read.success) continue;
    const { start, finished, errors, recoverable_errors: recoverable } = read.data;
    result.errors.push(...errors);
    result.recoverableErrors.push(
      ...Object.entries(recoverable).flatMap(([level, said]) =>
        said.map((text) => `${level}: ${text}`),
      ),
    );
    if (start != null && finished != null && finished >= start)
      result.stages.push({ name, seconds: finished - start });
  }
  return {
    ...result,
    errors: result.errors.slice(0, MAX_BOOT_ERRORS),
    recoverableErrors: result.recoverableErrors.slice(0, MAX_BOOT_ERRORS),
  };
}

/** Returns the running stage; a file written between two stages has none. */
function stageOf({ stage }: Readonly<Record<string, unknown>>): BootStage | null {
  const at = FILE_STAGES.findIndex((name) => name === stage);
  return BOOT_STAGES[at] ?? null;
}
