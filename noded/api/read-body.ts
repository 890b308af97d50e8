import type { IncomingMessage } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';

/** Enough for the largest opcode: three documents of 1 MiB in base64, keys and parameters. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** @throws AppError REQUEST_TOO_LARGE over the limit; the rest is read by nobody, and the answer can still be sent */
export async function readBody(
  request: IncomingMessage,
  maxBytes = MAX_BODY_BYTES,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  const body = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > maxBytes)
      throw new AppError('REQUEST_TOO_LARGE', `the request is longer than ${maxBytes} bytes`, {
        hint: 'send less at a time',
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** @throws AppError VALIDATION, REQUEST_TOO_LARGE; the text is never in the message */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's message quotes the text, which may hold a secret.
    throw new AppError('VALIDATION', 'the request body is not JSON');
  }
}
