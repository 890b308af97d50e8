import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { freeSocketPath, listenOnUnixSocket } from '#shared/socket/listen-unix.ts';
import { joinStreams } from '#shared/stream/join-streams.ts';
import { openDeviceClientSocket, setHopLimit } from '#shared/sys/network-sockets.ts';
import type { Instance } from '../channel/instance.ts';
import type { InstanceDirectory } from '../channel/registry.ts';
import { type ControlOptions, createControlApp, describeError, instanceOf } from './control-app.ts';

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

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connects to a TCP port of the guest, through its own device only.
 * @throws AppError GUEST_UNREACHABLE
 */
async function connectToGuest(instance: Instance, port: number): Promise<Socket> {
  const { device, ip, hopLimit } = instance.view.channel;
  try {
    const socket = openSocket(device, hopLimit);
    socket.setNoDelay(true);
    try {
      socket.connect({ host: ip, port });
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    } catch (error) {
      socket.on('error', () => undefined);
      socket.destroy();
      throw error;
    }
    return socket;
  } catch (error) {
    const isTimeout = error instanceof Error && error.name === 'AbortError';
    const reason = isTimeout ? `no answer within ${CONNECT_TIMEOUT_MS / 1000} s` : messageOf(error);
    throw new AppError(
      'GUEST_UNREACHABLE',
      `cannot connect to port ${port} of ${instance.view.name}: ${reason}`,
      { details: { port, instance: instance.view.uuid }, cause: error },
    );
  }
}

/** In Ganeti mode the view has no device: routes lead to the guest. */
function openSocket(device: string, hopLimit: number): Socket {
  if (device === '') return new Socket({ allowHalfOpen: true });
  const fd = openDeviceClientSocket(device);
  setHopLimit(fd, false, hopLimit);
  return new Socket({ fd, allowHalfOpen: true, readable: true, writable: true });
}
