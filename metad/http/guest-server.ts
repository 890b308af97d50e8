import { STATUS_CODES, createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { Instance } from '../channel/instance.ts';
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
  TIMEOUT_CHECK_INTERVAL_MS,
} from '../limits.ts';
import { hasOwnAddress } from '../channel/has-own-address.ts';
import type { GuestHandler, Peer } from './guest-handler.ts';
import type { GuestMetrics } from './guest-metrics.ts';

/**
 * HTTP for all guests: one server without a listener of its own, which is given the connections that the devices' sockets
 * accept together with the instance that they belong to.
 */
export class GuestServer implements Disposable {
  readonly #server: Server;
  readonly #peers = new WeakMap<Socket, Peer>();
  readonly #metrics: GuestMetrics;

  constructor(handler: GuestHandler, metrics: GuestMetrics) {
    this.#metrics = metrics;
    this.#server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
        requireHostHeader: true,
        // A GET without a body needs no stream for one. Whoever reads a body looks at `readableEnded` first.
        optimizeEmptyRequests: true,
      },
      (request, response) => {
        const peer = this.#peers.get(request.socket);
        if (!peer) {
          request.socket.destroy();
          return;
        }
        handler.handle(peer, request, response);
      },
    );
    // MAX_HEADER_BYTES bounds them. Any other number would mean that the guards do not see the headers beyond it.
    this.#server.maxHeadersCount = 0;
    this.#server.on('clientError', (error, socket) =>
      this.#refuseMalformed(error, socket as Socket),
    );
    this.#server.on('connect', (_request: IncomingMessage, socket: Socket) => {
      endWith(socket, 405, ['Allow: GET, HEAD']);
    });
    // Node starts to watch its timeouts when a server listens, which this one never does by itself.
    this.#server.emit('listening');
  }

  /** Takes a connection that came in through the device of an instance. */
  accept(instance: Instance, socket: Socket, isGenuine = hasOwnAddress(instance, socket)): void {
    socket.on('error', () => undefined);
    const isFull = instance.sockets.size >= instance.view.limits.connections;
    if (isFull && !this.#closeIdle(instance)) {
      this.#metrics.refused('connections');
      socket.destroy();
      return;
    }
    instance.addSocket(socket);
    this.#peers.set(socket, {
      instance,
      isGenuine,
      openResponses: 0,
    });
    this.#server.emit('connection', socket);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Some clients leave a connection open after each request: the oldest that was answered and is idle makes room. */
  #closeIdle(instance: Instance): boolean {
    for (const socket of instance.sockets) {
      const isAnswered = socket.bytesWritten > 0 && socket.writableLength === 0;
      if (!isAnswered || this.#peers.get(socket)?.openResponses !== 0) continue;
      instance.removeSocket(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  #refuseMalformed(error: Error, socket: Socket): void {
    this.#metrics.refused('malformed');
    // In the middle of an answer there is no place for another one.
    if (!socket.writable || (this.#peers.get(socket)?.openResponses ?? 0) > 0) {
      socket.destroy();
      return;
    }
    const code = systemCodeOf(error);
    if (code === 'HPE_HEADER_OVERFLOW') endWith(socket, 431);
    else if (code === 'ERR_HTTP_REQUEST_TIMEOUT') endWith(socket, 408);
    else if (code === 'ECONNRESET') socket.destroy();
    else endWith(socket, 400);
  }
}

function endWith(socket: Socket, status: number, headers: readonly string[] = []): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...headers,
    'Content-Length: 0',
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
  // A client that goes on sending is not waited for.
  setTimeout(() => socket.destroy(), 1000).unref();
}
