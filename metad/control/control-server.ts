import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceDirectory } from '../channel/registry.ts';
import { freeSocketPath, listenOnUnixSocket } from '#shared/socket/listen-unix.ts';
import { joinStreams } from '#shared/stream/join-streams.ts';
import { connectToGuest } from './connect.ts';
import { createControlApp, describeError, instanceOf } from './control-app.ts';
import type { ControlOptions } from './control-app.ts';

const CONNECT_PATH = /^\/v1\/instances\/([0-9a-f-]{36})\/connect\/(\d{1,5})$/;
/** Read and write for the owner, and so for root, only. */
const SOCKET_MODE = 0o600;

/** Listens for HTTP on a unix socket. Every program that can open the socket is trusted. */
export async function listenForControl(
  socketPath: string,
  options: ControlOptions,
): Promise<AsyncDisposable> {
  await refuseTakenSocket(socketPath);
  const app = createControlApp(options);
  const handle = app.callback();
  // Waits and streams last for any time, and a client must not find its idle connection closed.
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    void upgrade(options.registry, request, socket, head);
  });
  await listenOnUnixSocket(server, socketPath, { mode: SOCKET_MODE });
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await rm(socketPath, { force: true });
    },
  };
}

/** @throws AppError CONFLICT when another process answers there */
export async function refuseTakenSocket(socketPath: string): Promise<void> {
  if (!(await freeSocketPath(socketPath)))
    throw new AppError('CONFLICT', `another gnt-metad is listening on ${socketPath}`);
}

async function upgrade(
  registry: InstanceDirectory,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): Promise<void> {
  socket.on('error', () => socket.destroy());
  try {
    const match = CONNECT_PATH.exec(request.url ?? '');
    if (!match) throw new AppError('NOT_FOUND', 'this path does not accept connections');
    const guest = await connectToGuest(instanceOf(registry, match[1]), portOf(match[2] ?? ''));
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n');
    if (head.length > 0) guest.write(head);
    socket.setTimeout(0);
    joinStreams(socket, guest);
  } catch (error) {
    const { status, body } = describeError(error);
    const text = JSON.stringify(body);
    socket.end(
      `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    );
  }
}

function portOf(text: string): number {
  const port = Number(text);
  if (port >= 1 && port <= 65_535) return port;
  throw new AppError('VALIDATION', `port: ${text} is not a TCP port`);
}
