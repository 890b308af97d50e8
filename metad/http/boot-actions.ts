import { z } from 'zod';
import {
  BOOT_STAGES,
  MAX_BOOT_ERROR_LENGTH,
  MAX_BOOT_ERRORS,
  bootStage,
  type BootEvent,
  type BootResult,
} from '#shared/contract/boot-report.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { EventLog } from '../channel/event-log.ts';
import { MAX_BOOT_EVENT_BYTES, MAX_BOOT_STATUS_BYTES } from '../config/limits.ts';
import type { ServedView } from '../view/served-view.ts';
import type { Exchange } from './exchange.ts';
import { bodyOf } from './request-body.ts';
import { sendEmpty, sendText } from './reply.ts';

/** cloud-init's webhook (cloudinit/reporting/handlers.py); what else it sends is not looked at. */
const webhookEvent = z.object({
  event_type: z.enum(['start', 'finish']),
  name: z.string().max(256),
  description: z.string().default(''),
  result: z.enum(['SUCCESS', 'WARN', 'FAIL']).optional(),
});

/**
 * One event of cloud-init's reporting webhook. Those of other programs that report the same way are
 * taken and forgotten: a refusal would be a warning in the guest's log.
 */
export async function bootEvents(exchange: Exchange, events: EventLog): Promise<void> {
  const body = await bodyOf(exchange, MAX_BOOT_EVENT_BYTES);
  if (!body) return;
  const given = webhookEvent.safeParse(parseJson(body));
  if (!given.success) return sendText(exchange.response, 400, 'not an event of cloud-init');
  const event = readEvent(given.data, maskOf(exchange.instance.view));
  if (event) events.append(exchange.instance.view.uuid, { type: 'boot', event });
  sendEmpty(exchange.response, 204);
}

type Mask = (text: string) => string;
const masks = new WeakMap<ServedView, Mask>();

/**
 * What a guest says of its boot is stored, and cloud-init quotes commands and what they printed:
 * the instance's own private and secret values are taken out before the words leave this process.
 */
function maskOf(view: ServedView): Mask {
  const known = masks.get(view);
  if (known) return known;
  const hidden = [...view.osParameters.values()].flatMap(({ value, visibility }) =>
    value === null || visibility === 'public' ? [] : [reveal(value)],
  );
  const mask = createMask(hidden);
  masks.set(view, mask);
  return mask;
}

function readEvent(given: z.infer<typeof webhookEvent>, mask: Mask): BootEvent | null {
  const [name = '', module] = given.name.split('/', 2);
  const stage = bootStage.safeParse(name);
  if (!stage.success) return null;
  return {
    stage: stage.data,
    module: module === undefined ? null : mask(module).slice(0, 128),
    phase: given.event_type,
    result: given.result ?? null,
    description: mask(given.description).slice(0, MAX_BOOT_ERROR_LENGTH),
  };
}

const moment = z.number().nonnegative().nullish();
const statusStage = z.object({
  start: moment,
  finished: moment,
  errors: z.array(z.string()).default([]),
  /** By level of the log line, since 23.4. */
  recoverable_errors: z.record(z.string(), z.array(z.string())).default({}),
});
/** `/run/cloud-init/status.json`. */
const statusFile = z.object({ v1: z.record(z.string(), z.unknown()) });
/** The names of the stages in that file. */
const FILE_STAGES = ['init-local', 'init', 'modules-config', 'modules-final'] as const;

/** cloud-init's own account of the boot, posted when that is over. */
export async function bootStatus(exchange: Exchange, events: EventLog): Promise<void> {
  const body = await bodyOf(exchange, MAX_BOOT_STATUS_BYTES);
  if (!body) return;
  const file = statusFile.safeParse(parseJson(body));
  if (!file.success) return sendText(exchange.response, 400, 'not a status file of cloud-init');
  const result = readStatus(file.data.v1, maskOf(exchange.instance.view));
  events.append(exchange.instance.view.uuid, { type: 'boot-result', result });
  sendEmpty(exchange.response, 204);
}

function readStatus(file: Readonly<Record<string, unknown>>, mask: Mask): BootResult {
  const result: BootResult = { errors: [], recoverableErrors: [], stages: [] };
  for (const [index, name] of BOOT_STAGES.entries()) {
    const read = statusStage.safeParse(file[FILE_STAGES[index] ?? name]);
    if (!read.success) continue;
    const { start, finished, errors, recoverable_errors: recoverable } = read.data;
    result.errors.push(...errors);
    result.recoverableErrors.push(
      ...Object.entries(recoverable).flatMap(([level, texts]) =>
        texts.map((text) => `${level}: ${text}`),
      ),
    );
    if (start != null && finished != null && finished >= start)
      result.stages.push({ name, seconds: finished - start });
  }
  return {
    ...result,
    errors: bounded(result.errors, mask),
    recoverableErrors: bounded(result.recoverableErrors, mask),
  };
}

/** Masked before it is cut: half a secret is none that is known. */
function bounded(texts: readonly string[], mask: Mask): string[] {
  return texts.slice(0, MAX_BOOT_ERRORS).map((text) => mask(text).slice(0, MAX_BOOT_ERROR_LENGTH));
}
