import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_MESSAGE_BYTES } from '#shared/contract/channel-message.ts';
import { OFFSET_HEADER } from '#shared/contract/metad-control.ts';
import type { ByteQueue, QueueSlice } from '../channel/byte-queue.ts';
import { etagOf } from '../dialects/tree.ts';
import { MAX_QUEUE_BYTES, MAX_READ_WAIT_S, RETRY_AFTER_S } from '../config/limits.ts';
import { queryInteger, waitingSignal } from './exchange.ts';
import { readBody } from './request-body.ts';
import { sendEmpty, sendText } from './reply.ts';

const NOTHING = Buffer.alloc(0);

/**
 * Serves `GET …/read?wait=S&offset=N` to the guest and, through the control socket, to the host.
 * Without an offset the bytes are handed out once. With one they stay until a higher offset
 * acknowledges them.
 */
export async function serveQueueRead(
  queue: ByteQueue,
  response: ServerResponse,
  query: URLSearchParams | null,
): Promise<void> {
  const offset = queryInteger(query, 'offset', Number.MAX_SAFE_INTEGER);
  const waitS = waitOf(query);
  if (offset === null) return sendText(response, 400, 'offset: not a whole number');
  if (waitS === null) {
    return sendText(
      response,
      400,
      `wait: not a whole number of seconds from 0 to ${MAX_READ_WAIT_S}`,
    );
  }
  if (offset !== undefined && offset > queue.endOffset) return sendBeyondEnd(response, queue);
  if (waitS > 0 && !queue.hasBytesFrom(offset ?? 0)) {
    const waiting = waitingSignal(response, waitS * 1000);
    while (!waiting.signal.aborted && !queue.isHeld && !queue.hasBytesFrom(offset ?? 0)) {
      await queue.waitForWrite(waiting.signal);
    }
    waiting.dispose();
    // The client has disconnected: bytes taken now would be lost.
    if (waiting.isGone()) return;
  }
  // The next request goes to the node that then has the guest.
  if (queue.isHeld)
    return sendSlice(response, { bytes: NOTHING, nextOffset: offset ?? queue.firstOffset });
  const slice = takeSlice(queue, offset, response.req.method === 'HEAD');
  if (slice) sendSlice(response, slice);
  else sendBeyondEnd(response, queue);
}

function takeSlice(
  queue: ByteQueue,
  offset: number | undefined,
  isPeek: boolean,
): QueueSlice | null {
  if (isPeek) return queue.peek(offset);
  return offset === undefined ? queue.take() : queue.readFrom(offset);
}

/** `wait_for_change` is an alias of `wait`. */
function waitOf(query: URLSearchParams | null): number | null {
  const wait = queryInteger(query, 'wait', MAX_READ_WAIT_S);
  if (wait !== undefined || query?.get('wait_for_change')?.toLowerCase() !== 'true') {
    return wait === undefined ? 0 : wait;
  }
  const timeout = queryInteger(query, 'timeout_sec', Number.MAX_SAFE_INTEGER);
  return timeout === null ? null : Math.min(timeout ?? MAX_READ_WAIT_S, MAX_READ_WAIT_S);
}

function sendSlice(response: ServerResponse, slice: QueueSlice): void {
  const headers = ['Cache-Control', 'no-store', OFFSET_HEADER, String(slice.nextOffset)];
  if (slice.bytes.length === 0) return sendEmpty(response, 204, headers);
  response.writeHead(200, [
    'Content-Type',
    'application/octet-stream',
    'Content-Length',
    String(slice.bytes.length),
    'ETag',
    etagOf(slice.bytes),
    ...headers,
  ]);
  if (response.req.method === 'HEAD') response.end();
  else response.end(slice.bytes);
}

function sendBeyondEnd(response: ServerResponse, queue: ByteQueue): void {
  sendText(
    response,
    416,
    `offset: beyond the end of the data, the next offset is ${queue.endOffset}`,
    [OFFSET_HEADER, String(queue.endOffset)],
  );
}

/** Serves `POST …/write`: whole or not at all. @returns the bytes taken */
export async function serveQueueWrite(
  queue: ByteQueue,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number> {
  const body = await readBody(request, MAX_MESSAGE_BYTES);
  if (body.kind === 'aborted') return 0;
  if (body.kind === 'too-large') {
    sendText(response, 413, `a write is limited to ${MAX_MESSAGE_BYTES} bytes`);
    return 0;
  }
  if (!queue.push(body.bytes)) {
    const text = queue.isHeld
      ? 'the guest is moving to another node'
      : `${queue.waitingBytes} of ${MAX_QUEUE_BYTES} bytes are not read yet`;
    sendText(response, 429, text, ['Retry-After', String(RETRY_AFTER_S)]);
    return 0;
  }
  sendEmpty(response, 204, [OFFSET_HEADER, String(queue.endOffset)]);
  return body.bytes.length;
}
