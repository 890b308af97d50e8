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
 * More values than the largest set of boot environments. A parser needs 25 ms for this many nested
 * lists. Without the limit, a body of maximum size would block the daemon for ten seconds.
 */
export const MAX_BODY_VALUES = 50_000;

/**
 * Reads a request's body. Over the limit, it reads and discards as much again. A client that sends
 * everything before it reads would otherwise see a broken connection in place of the answer.
 * @throws AppError REQUEST_TOO_LARGE over the limit
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

/** @throws AppError VALIDATION, REQUEST_TOO_LARGE, without the text in the message */
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

/**
 * Returns undefined for invalid JSON or bytes that are not UTF-8: a decoder would replace parts of
 * a value.
 */
export function parseUtf8Json(bytes: Buffer): unknown {
  return isUtf8(bytes) ? parseJson(bytes) : undefined;
}
