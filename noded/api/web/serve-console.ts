import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws';
import { every } from '#shared/clock/every.ts';
import { apiError } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { upgradeOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';
import { httpStatusOf, toAppError } from '../http/http-errors.ts';
import { refuseUpgrade } from '../http/raw-stream.ts';
import { watchRights, type WatchedRights } from './watch-rights.ts';
import { type Admission, admitRequest, type Entrance, type WebParts } from './web-app.ts';

const CONSOLE = 'GET /v1/instances/{name}/console';
/** Largest message of a browser: a pasted text. */
const MAX_MESSAGE_BYTES = 65_536;
const PING_MS = 30_000;
const MAX_REFUSAL_BYTES = 65_536;
/** Bytes of a reason in a close frame (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123;
/** A close frame has this plus the status of HTTP; statuses from 4000 on are an application's. */
const CLOSE_BASE = 4000;

/**
 * Answers WebSocket requests with the serial console of an instance. Messages of both directions
 * are binary. A console that cannot be opened is closed with a status of 4000 plus that of HTTP,
 * and the reason: a browser does not show a page the answer to a refused request.
 */
export function serveConsoles(
  server: Server | TlsServer,
  parts: WebParts,
  entrance: Entrance,
): Disposable {
  const sockets = new WebSocketServer({
    ...{ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false },
  });
  const open = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const { session, instance } = await admitConsole(request, entrance, parts);
    const opened = await openConsole(parts.socketPath, request.url ?? '', session.signal);
    let isUpgraded = false;
    sockets.handleUpgrade(request, socket, head, (client) => {
      isUpgraded = true;
      const { sessions } = entrance;
      client.on('message', () => sessions.use(session));
      void bridge(client, opened, watchRights(session, instance, parts.instances));
    });
    // The callback runs at once, or never: the handshake is invalid, or the client has left.
    if (!isUpgraded && 'stream' in opened) opened.stream.destroy();
  };
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    open(request, socket, head).catch((error: unknown) =>
      refuseUpgrade(socket, toAppError(error, parts.logger)),
    );
  });
  return {
    [Symbol.dispose]: () => {
      for (const client of sockets.clients) client.terminate();
    },
  };
}

async function admitConsole(
  request: IncomingMessage,
  entrance: Entrance,
  parts: WebParts,
): Promise<Admission> {
  // A browser always sends it, and does not apply the same-origin policy to WebSockets.
  if (request.headers.origin === undefined)
    throw new AppError('NOT_ALLOWED', 'the header Origin is missing');
  const admission = await admitRequest(request, entrance, parts);
  if (admission.endpoint.key === CONSOLE) return admission;
  throw new AppError('NOT_FOUND', `there is no WebSocket at ${admission.endpoint.path}`);
}

type Opened =
  | { readonly stream: Duplex }
  /** Why the node refused: a status of HTTP, and a text. */
  | { readonly status: number; readonly reason: string };

async function openConsole(on: string, path: string, signal: AbortSignal): Promise<Opened> {
  const upgraded = await upgradeOverSocket({ on, path, headers: { host: 'noded' }, signal });
  if (upgraded.kind === 'raw') return { stream: upgraded.socket };
  const { statusCode: status = 500 } = upgraded.answer;
  const refusal = apiError.safeParse(parseJson(await collect(upgraded.answer, MAX_REFUSAL_BYTES)));
  return { status, reason: refusal.data?.message ?? 'the console cannot be opened' };
}

async function bridge(client: WebSocket, opened: Opened, rights: WatchedRights): Promise<void> {
  using watched = rights;
  const { signal } = watched;
  client.on('error', () => client.terminate());
  if ('status' in opened) {
    client.close(CLOSE_BASE + opened.status, cut(opened.reason));
    return;
  }
  const end = (): void => {
    const { code, message } = signal.reason as AppError; // as WatchedRights says
    client.close(CLOSE_BASE + httpStatusOf(code), cut(message));
    // A client may delay its close frame, and send more input before it.
    opened.stream.end();
  };
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  using pinging = keepAlive(client);
  void pinging;
  try {
    const browser = createWebSocketStream(client);
    await pipeline(browser, opened.stream, browser);
  } catch {
    // One side has disconnected; the pipeline has destroyed the other.
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** Ends a connection whose other side has vanished: each ping must be answered before the next. */
function keepAlive(client: WebSocket): Disposable {
  let isAlive = true;
  client.on('pong', () => (isAlive = true));
  return every(PING_MS, () => {
    if (!isAlive) client.terminate();
    isAlive = false;
    client.ping();
  });
}

/** Cuts a text to the bytes of a close frame. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_REASON_BYTES) return text;
  // A cut inside a character decodes to U+FFFD, which takes three bytes.
  return bytes
    .subarray(0, MAX_REASON_BYTES - 3)
    .toString('utf8')
    .replace(/\uFFFD$/, '');
}
