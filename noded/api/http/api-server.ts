import { createServer, type IncomingMessage, type Server } from 'node:http';
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import Koa from 'koa';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { freeSocketPath, listenOnUnixSocket } from '#shared/socket/listen-unix.ts';
import { answerErrors } from './http-errors.ts';
import { forwardToOwner, type Forwarding } from './forward.ts';
import type { ApiHandlers } from './handlers.ts';
import { openRawStream } from './raw-stream.ts';
import { type Askers, createApiRouter } from './serve-routes.ts';

export interface ApiServer {
  close(): Promise<void>;
}

/** The handlers, and the nodes that requests may be forwarded to. */
export interface ServedApi {
  readonly handlers: ApiHandlers;
  /** Null if nothing is forwarded: requests from other nodes are never passed on. */
  readonly forwarding: Forwarding | null;
  readonly logger: Logger;
}

/** Serves the node's API on its unix socket. Only file permissions protect it. */
export async function startApiServer(path: string, served: ServedApi): Promise<ApiServer> {
  const { server, streams } = createApi(served);
  await listen(server, path);
  return {
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      for (const socket of streams) socket.destroy();
      await closed;
      await rm(path, { force: true });
    },
  };
}

/**
 * Serves the peers' part of the node's API on given connections, each with the name of the peer.
 * The caller closes them.
 */
export function createConnectionApi(served: ServedApi): (connection: Duplex, from: string) => void {
  const askers = new WeakMap<object, string>();
  const { server } = createApi(served, askers);
  return (connection, from) => {
    askers.set(connection, from);
    server.emit('connection', connection);
  };
}

function createApi(
  served: ServedApi,
  askers?: Askers,
): {
  readonly server: Server;
  readonly streams: ReadonlySet<Duplex>;
} {
  const app = new Koa();
  app.silent = true;
  app.use(answerErrors(served.logger));
  useApi(app, served, askers);
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  // An event stream may be silent for the length of its job.
  server.requestTimeout = 0;
  // Node's server no longer tracks an upgraded connection.
  const streams = new Set<Duplex>();
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    streams.add(socket);
    socket.once('close', () => streams.delete(socket));
    void openRawStream(request, socket, head, served);
  });
  return { server, streams };
}

/** Adds the endpoints of the table to an application. */
export function useApi(app: Koa, { handlers, forwarding }: ServedApi, askers?: Askers): void {
  const router = createApiRouter(handlers, askers);
  if (forwarding !== null) app.use(forwardToOwner(forwarding));
  app.use(router.routes());
  app.use(router.allowedMethods());
  app.use((context) => {
    throw new AppError('NOT_FOUND', `this API has no ${context.method} ${context.path}`);
  });
}

async function listen(server: Server, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  if (!(await freeSocketPath(path))) {
    throw new AppError('CONFLICT', `another node daemon is listening on ${path}`, {
      hint: 'Stop it first, or set GNT_ROOT to another root.',
    });
  }
  await listenOnUnixSocket(server, path, { mode: 0o600 });
}
