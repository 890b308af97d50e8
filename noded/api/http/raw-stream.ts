import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { isUpgrade } from '#shared/contract/endpoint.ts';
import { listEndpoints } from '#shared/contract/endpoints.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { forwardUpgrade, type Forwarding } from './forward.ts';
import type { ApiHandlers } from './handlers.ts';
import { describeApiError, httpStatusOf, toAppError } from './http-errors.ts';

export interface RawStreamDependencies {
  readonly handlers: ApiHandlers;
  readonly forwarding: Forwarding | null;
  readonly logger: Logger;
}

/** Handles an upgrade: after status 101 the connection is a raw stream. */
export async function openRawStream(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { handlers, forwarding, logger }: RawStreamDependencies,
): Promise<void> {
  socket.on('error', () => socket.destroy());
  try {
    if (forwarding !== null && (await forwardUpgrade(request, socket, head, forwarding))) return;
    const target = await openTarget(request.url ?? '', handlers);
    target.on('error', () => socket.destroy());
    // The client may have disconnected while the stream was opened.
    if (socket.destroyed) {
      target.destroy();
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    if (head.length > 0) target.write(head);
    socket.pipe(target);
    target.pipe(socket);
    socket.on('close', () => target.destroy());
    target.on('close', () => socket.end());
  } catch (error) {
    refuseUpgrade(socket, toAppError(error, logger));
  }
}

/** Answers an upgrade request with an error, and ends the connection. */
export function refuseUpgrade(socket: Duplex, error: AppError): void {
  const body = JSON.stringify(describeApiError(error));
  socket.end(
    `HTTP/1.1 ${httpStatusOf(error.code)} Refused\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** @throws AppError NOT_FOUND, and the handler's refusals */
function openTarget(url: string, handlers: ApiHandlers): Promise<Duplex> {
  const [path = ''] = url.split('?');
  const parts = path.split('/');
  for (const stream of listEndpoints().filter(isUpgrade)) {
    const params = matchParts(stream.path.split('/'), parts);
    // A stream's handler takes the parameters of its own path.
    const open = handlers[stream.key] as (params: object) => Promise<Duplex>;
    if (params !== undefined) return open(params);
  }
  throw new AppError('NOT_FOUND', `this API has no stream at ${path}`);
}

/**
 * Returns the parameters of a path; undefined if it does not match. Instance names need no escapes,
 * so the path is not decoded.
 */
function matchParts(
  wanted: readonly string[],
  parts: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (wanted.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const name = /^\{(\w+)\}$/.exec(wanted[index] ?? '')?.[1];
    if (name !== undefined) setOwn(params, name, part);
    else if (wanted[index] !== part) return undefined;
  }
  return params;
}
