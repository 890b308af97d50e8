import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { MAX_RELAY_STREAMS } from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { requestOverSocket } from '#shared/socket/http-request.ts';
import { pour } from '#shared/stream/pour.ts';
import { BYTES_PER_PIECE, MAX_BODY_PIECES, RETRY_AFTER_S } from '../config/limits.ts';
import type { Audit } from './audit.ts';
import type { Exchange } from './exchange.ts';
import { hasUnreadBody, sendText } from './reply.ts';

/**
 * Passes a request for a relay on to the node daemon, which adds the credential, and its answer
 * back. Both bodies are streamed.
 * @param target path and query below `/relay/`, as the guest wrote them
 */
export type ServeRelay = (exchange: Exchange, target: string) => Promise<void> | void;

/** Of this hop, as the headers that `Connection` names. Both connections have their own framing. */
const OF_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te'],
  ...['trailer', 'expect', 'host'],
]);

/** @param socketPath of the node daemon's content socket */
export function createServeRelay(socketPath: string, audit: Audit): ServeRelay {
  const slots = new InstanceSlots(MAX_RELAY_STREAMS);
  return async (exchange, target) => {
    const { instance, request, response } = exchange;
    const { uuid, mode } = instance.view;
    if (mode === 'install') return sendText(response, 404, 'an installation has no relays');
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (isReading && hasUnreadBody(request))
      return sendText(response, 400, 'GET and HEAD must not have a body');
    const giveBack = slots.take(uuid);
    if (!giveBack) return refuse(exchange, 503, 'too many concurrent requests to relays');
    response.on('close', giveBack);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    response.on('finish', () => {
      // The rest of a body that the server did not want.
      if (!request.complete) request.socket.destroySoon();
    });
    const hasBody = hasUnreadBody(request);
    if (hasBody) limitPieces(request);
    try {
      const answer = await requestOverSocket({
        on: socketPath,
        path: `/v1/instances/${uuid}/relay/${target}`,
        method: request.method,
        headers: headersFor(request, hasBody),
        stream: hasBody ? request : undefined,
        signal: gone.signal,
      });
      await pass(exchange, answer);
    } catch (error) {
      if (gone.signal.aborted) return;
      audit.failed(instance, 'warn', 'relay.failed', { error: messageOf(error) });
      if (response.headersSent) response.destroy();
      else refuse(exchange, 503, 'the node daemon does not answer');
    }
  };
}

async function pass({ response }: Exchange, answer: IncomingMessage): Promise<void> {
  const { rawHeaders } = answer;
  const headers: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!OF_CONNECTION.has(name.toLowerCase())) headers.push(name, rawHeaders[at + 1] ?? '');
  }
  response.writeHead(answer.statusCode ?? 502, headers);
  // The guest waits for the status, even if the first byte of the body comes much later.
  response.flushHeaders();
  await pour(answer, response);
}

/** Each piece costs a turn. The relay limits the time and size of bodies. */
function limitPieces(request: IncomingMessage): void {
  let pieces = 0;
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    pieces += 1;
    bytes += chunk.length;
    if (pieces > MAX_BODY_PIECES + bytes / BYTES_PER_PIECE) request.destroy();
  });
}

/** The node daemon checks them again. */
function headersFor(request: IncomingMessage, hasBody: boolean): OutgoingHttpHeaders {
  const lines = new Map<string, string[]>();
  const { rawHeaders } = request;
  const { connection = '', 'content-length': length } = request.headers;
  const named = connection.split(',').map((name) => name.trim().toLowerCase());
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    if (OF_CONNECTION.has(name) || name === 'content-length' || named.includes(name)) continue;
    lines.set(name, [...(lines.get(name) ?? []), rawHeaders[at + 1] ?? '']);
  }
  const isChunked = hasBody && length === undefined;
  return {
    ...Object.fromEntries(lines),
    ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': length ?? 0 }),
  };
}

function refuse({ response }: Exchange, status: number, reason: string): void {
  sendText(response, status, reason, status === 503 ? ['Retry-After', String(RETRY_AFTER_S)] : []);
}
