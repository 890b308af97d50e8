import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { collect, TooLong } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Enough for the largest opcode: three documents of 1 MiB in base64, keys and parameters. */
export const MAX_BODY_BYTES = 16 * MIB;
/**
 * More than the largest set of boot environments has. A parser takes 25 ms for as many lists in
 * each other, and ten seconds, in which nobody else is served, for those that the bytes would
 * allow.
 */
export const MAX_BODY_VALUES = 50_000;

/**
 * @throws AppError REQUEST_TOO_LARGE over the limit. As much again is read and thrown away, for a
 * client that sends all before it reads would find a broken connection instead of the answer.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes = MAX_BODY_BYTES,
): Promise<Buffer> {
  try {
    return await collect(request.iterator({ destroyOnReturn: false }), maxBytes);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    await discard(request, maxBytes);
    throw new AppError('REQUEST_TOO_LARGE', `the request is larger than ${maxBytes} bytes`, {
      hint: 'Send less data at a time.',
      cause: error,
    });
  }
}

async function discard(request: IncomingMessage, maxBytes: number): Promise<void> {
  let total = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    total += (chunk as Buffer).length; // no encoding is set
    if (total > maxBytes) return;
  }
}

/** @throws AppError VALIDATION, REQUEST_TOO_LARGE; the text is never in the message */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const bytes = await readBody(request);
  if (countJsonValues(bytes, MAX_BODY_VALUES) > MAX_BODY_VALUES) {
    throw new AppError('REQUEST_TOO_LARGE', `the request has more than ${MAX_BODY_VALUES} values`, {
      hint: 'Send less data at a time.',
    });
  }
  const value = parseUtf8Json(bytes);
  if (value === undefined)
    throw new AppError('VALIDATION', 'the request body is not JSON in UTF-8');
  return value;
}

/** Undefined also for bytes that are not UTF-8: a decoder would replace parts of a value. */
export function parseUtf8Json(bytes: Buffer): unknown {
  return isUtf8(bytes) ? parseJson(bytes) : undefined;
}
