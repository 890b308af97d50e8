import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendText } from './reply.ts';
import type { Exchange } from './exchange.ts';
import { BODY_TIMEOUT_MS, BYTES_PER_PIECE, MAX_BODY_PIECES } from '../config/limits.ts';

export type BodyResult =
  | { readonly kind: 'complete'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  /**
   * The client disconnected, took too long, or was cut off because its pieces were too small. It
   * gets no answer.
   */
  | { readonly kind: 'aborted' };

/** Ends a request whose body does not arrive in time. */
export function limitBodyTime(request: IncomingMessage, response: ServerResponse): void {
  const timer = setTimeout(() => {
    if (response.headersSent) request.destroy();
    else sendText(response, 408, 'the body takes too long', ['Connection', 'close']);
  }, BODY_TIMEOUT_MS);
  const stop = (): void => clearTimeout(timer);
  request.on('end', stop);
  request.on('close', stop);
}

/** Reads a body up to a limit, and stops when the body is longer or declared longer. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<BodyResult> {
  const declared = request.headers['content-length'];
  if (declared !== undefined && Number(declared) > maxBytes) return { kind: 'too-large' };
  // A request without a body.
  if (request.readableEnded) return { kind: 'complete', bytes: Buffer.alloc(0) };
  const maxPieces = MAX_BODY_PIECES + maxBytes / BYTES_PER_PIECE;
  return await new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (result: BodyResult): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      request.on('error', () => undefined);
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (chunks.length > maxPieces) {
        finish({ kind: 'aborted' });
        request.destroy();
      } else if (length > maxBytes) {
        request.pause();
        finish({ kind: 'too-large' });
      } else {
        chunks.push(chunk);
      }
    };
    const onEnd = (): void => finish({ kind: 'complete', bytes: Buffer.concat(chunks, length) });
    const onClose = (): void => finish({ kind: 'aborted' });
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

/** Returns the body of a request, or null when the request needs no further answer. */
export async function bodyOf(exchange: Exchange, maxBytes: number): Promise<Buffer | null> {
  const body = await readBody(exchange.request, maxBytes);
  if (body.kind === 'complete') return body.bytes;
  if (body.kind === 'too-large') {
    sendText(exchange.response, 413, `the body is larger than ${maxBytes} bytes`);
  }
  return null;
}
