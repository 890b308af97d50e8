import { STATUS_CODES, createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { Instance } from '../channel/instance.ts';
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  TIMEOUT_CHECK_INTERVAL_MS,
  UNFINISHED_CHUNKS_BYTES,
} from '../config/limits.ts';
import { hasOwnAddress } from '../channel/has-own-address.ts';
import { type GateAnswer, gateRequests } from './gate.ts';
import type { GuestHandler } from './guest-handler.ts';
import type { GuestMetrics } from './guest-metrics.ts';
import { ParkedRequests, type Wait } from './parked-requests.ts';
import { Peer } from './peer.ts';

/**
 * Serves HTTP to all guests. It has no listener: the sockets of the devices accept connections and
 * pass them on with their instance.
 */
export class GuestServer implements Disposable {
  readonly #server: Server;
  readonly #peers = new WeakMap<Socket, Peer>();
  readonly #metrics: GuestMetrics;
  readonly #handler: GuestHandler;
  readonly #parked = new ParkedRequests((socket, bytes, isOver) =>
    this.#revive(socket, bytes, isOver),
  );

  constructor(handler: GuestHandler, metrics: GuestMetrics) {
    this.#metrics = metrics;
    this.#handler = handler;
    this.#server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: HEADERS_TIMEOUT_MS,
        // The handler limits the time of bodies, since those for relays may take longer.
        requestTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
        // The guard checks it, so that a request without one is logged.
        requireHostHeader: false,
        // A GET without a body needs no stream. Code that reads a body must check `readableEnded`
        // first.
        optimizeEmptyRequests: true,
        // Nothing here can be upgraded; the gate alone uses the event.
        shouldUpgradeCallback: () => false,
      },
      (request, response) => this.#handle(request, response),
    );
    // MAX_HEADER_BYTES bounds them. With a limit the guards would not see the headers beyond it.
    this.#server.maxHeadersCount = 0;
    // An unknown expectation does not change the answer.
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
      this.#handle(request, response),
    );
    // Connections come from net.Server: each is a Socket.
    this.#server.on('clientError', (error, socket) =>
      this.#refuseMalformed(error, socket as Socket),
    );
    this.#server.on('connect', (_request: IncomingMessage, socket: Socket) => {
      if (this.#isBeyondRate(socket)) return;
      this.#note(socket, 405, 'CONNECT');
      endWith(socket, 405, ['Allow: GET, HEAD']);
    });
    // Connections come from net.Server: each is a Socket.
    this.#server.on('upgrade', (request: IncomingMessage, socket, rest: Buffer) =>
      this.#park(request, socket as Socket, rest),
    );
    // Node starts its timeout checks when a server listens, which this one never does.
    this.#server.emit('listening');
  }

  accept(
    instance: Instance,
    socket: Socket,
    isGenuine = hasOwnAddress(instance, socket.remoteAddress),
  ): void {
    socket.on('error', () => undefined);
    if (instance.isKeptOut()) {
      this.#metrics.refused('kept-out');
      socket.resetAndDestroy();
      return;
    }
    const isFull = instance.sockets.size >= instance.view.limits.connections;
    if (isFull && !this.#closeIdle(instance)) {
      this.#metrics.refused('connections');
      socket.destroy();
      return;
    }
    instance.addSocket(socket);
    const peer = new Peer(instance, isGenuine, socket);
    this.#peers.set(socket, peer);
    this.#serve(socket, peer);
  }

  #serve(socket: Socket, peer: Peer): void {
    this.#server.emit('connection', socket);
    gateRequests(socket, (request) => this.#judge(peer, request));
  }

  #judge(peer: Peer, request: IncomingMessage): GateAnswer {
    if (!peer.mayAsk || !mayHaveBody(peer, request)) return 'stop';
    // A request behind others would have to wait for their answers.
    const wait = peer.isIdle ? this.#findWait(peer, request) : undefined;
    if (wait === undefined) return 'enter';
    peer.wait = wait;
    return 'take-out';
  }

  #findWait(peer: Peer, request: IncomingMessage): Wait | undefined {
    try {
      return this.#handler.findWait(peer, request);
    } catch {
      // The parser must not see an exception. `handle` meets the same failure and reports it.
      return undefined;
    }
  }

  #park(request: IncomingMessage, socket: Socket, rest: Buffer): void {
    const peer = this.#peers.get(socket);
    const wait = peer?.wait;
    if (!peer || !wait) return void socket.destroy();
    peer.wait = undefined;
    const head = headOf(request);
    peer.asked();
    // The timeout would be the keep-alive timeout of the last answer.
    socket.setTimeout(0);
    if (rest.length > 0)
      this.#revive(socket, Buffer.concat([Buffer.from(head, 'latin1'), rest]), false);
    else this.#parked.park({ instance: peer.instance, socket, head, wait });
  }

  #revive(socket: Socket, bytes: Buffer, isOver: boolean): void {
    const peer = this.#peers.get(socket);
    if (!peer || socket.destroyed) return;
    peer.answered();
    peer.revival = isOver ? 'answer' : 'wait';
    this.#serve(socket, peer);
    socket.emit('data', bytes);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.#parked[Symbol.dispose]();
    this.#server.closeAllConnections();
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const peer = this.#peers.get(request.socket);
    if (!peer) {
      request.socket.destroy();
    } else if (peer.mayAsk) {
      if (isChunked(request)) watchChunks(peer, request, response);
      this.#handler.handle(peer, request, response);
    } else {
      this.#cut(peer);
    }
  }

  #cut(peer: Peer): void {
    this.#metrics.refused('unanswered');
    peer.cutOff();
  }

  /**
   * Closes the oldest idle connection that was answered: some clients leave one open after each
   * request.
   */
  #closeIdle(instance: Instance): boolean {
    for (const socket of instance.sockets) {
      const isAnswered = socket.bytesWritten > 0 && socket.writableLength === 0;
      if (!isAnswered || !this.#peers.get(socket)?.isIdle) continue;
      instance.removeSocket(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  #refuseMalformed(error: Error, socket: Socket): void {
    const code = systemCodeOf(error) ?? 'unknown';
    const peer = this.#peers.get(socket);
    if (peer?.mayAsk === false) {
      this.#note(socket, null, 'too many unanswered requests');
      this.#cut(peer);
      return;
    }
    // After its answer it is read at most once more.
    if (code !== 'ECONNRESET' && socket.writable && this.#isBeyondRate(socket)) return;
    this.#metrics.refused('malformed');
    // Another answer cannot be put into the middle of one.
    const isAnswering = peer?.isIdle === false;
    const status = !socket.writable || isAnswering ? null : (peer?.refusal ?? statusFor(code));
    if (code !== 'ECONNRESET') this.#note(socket, status, code);
    if (status === null) socket.destroy();
    else endWith(socket, status);
  }

  /** Cuts off a guest whose malformed input, one connection each, exceeds its request rate. */
  #isBeyondRate(socket: Socket): boolean {
    const peer = this.#peers.get(socket);
    if (!peer || peer.instance.charge(1) === 0) return false;
    this.#metrics.refused('rate');
    peer.cutOff();
    return true;
  }

  #note(socket: Socket, status: number | null, reason: string): void {
    const peer = this.#peers.get(socket);
    if (peer) this.#handler.noteRefusal(peer, status, reason);
  }
}

/**
 * Each chunk costs a turn of the parser and of this program, however small it is, and nothing stops
 * the chunks of one read. So an instance may send one chunked body at a time, and none with GET or
 * HEAD.
 */
function mayHaveBody(peer: Peer, request: IncomingMessage): boolean {
  if (!isChunked(request)) return true;
  if (request.method === 'GET' || request.method === 'HEAD') peer.refusal = 400;
  else if (peer.instance.isReadingChunks) peer.refusal = 411;
  return peer.refusal === undefined;
}

function isChunked({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

/** Keeps out a guest for a while when its chunked body does not end, unless it failed early. */
function watchChunks({ instance }: Peer, request: IncomingMessage, response: ServerResponse): void {
  instance.isReadingChunks = true;
  response.on('close', () => {
    instance.isReadingChunks = false;
    if (!request.complete && request.socket.bytesRead > UNFINISHED_CHUNKS_BYTES) instance.keepOut();
  });
}

/** Returns the head of a request without a body, to be parsed again. */
function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let at = 0; at < rawHeaders.length; at += 2)
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** @returns null when the client is gone */
function statusFor(code: string): number | null {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return code === 'ECONNRESET' ? null : 400;
}

function endWith(socket: Socket, status: number, headers: readonly string[] = []): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...headers,
    'Content-Length: 0',
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
  // Do not wait for a client that keeps sending.
  setTimeout(() => socket.destroy(), 1000).unref();
}
