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

/** What is served, and where requests for what another node has go on to. */
export interface ServedApi {
  readonly handlers: ApiHandlers;
  /** Null where everything is answered here: other nodes' requests come this far and no further. */
  readonly forwarding: Forwarding | null;
  readonly logger: Logger;
}

/** Serves the node's API on its unix socket; file permissions are the only key. */
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
 * Serves the peers' part of the node's API on connections that are handed to it, each with the name
 * of the node that made it. The caller ends them.
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
  const router = createApiRouter(served.handlers, askers);
  app.use(answerErrors(served.logger));
  if (served.forwarding !== null) app.use(forwardToOwner(served.forwarding));
  app.use(router.routes());
  app.use(router.allowedMethods());
  app.use((context) => {
    throw new AppError('NOT_FOUND', `this API has no ${context.method} ${context.path}`);
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  // A stream of events may be silent for as long as its job is.
  server.requestTimeout = 0;
  // The server itself forgets a connection that is upgraded.
  const streams = new Set<Duplex>();
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    streams.add(socket);
    socket.once('close', () => streams.delete(socket));
    void openRawStream(request, socket, head, served);
  });
  return { server, streams };
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
