import { once } from 'node:events';
import { rename, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { listenOnUnixSocket } from '#shared/socket/listen-unix.ts';
import { MIB } from '#shared/units/bytes.ts';
import { LuxiDecoder, encodeLuxi } from './luxi-requests.ts';
import { LuxiParseFailure, LuxiRefusal, parseLuxiRequest } from './luxi-requests.ts';

/** Ganeti's daemon takes 8 MiB of text; an instance's parameters are far smaller. */
const MAX_MESSAGE_BYTES = 9 * MIB;
/** Ganeti's value: an idle or half-sent connection is closed without an answer. */
const IDLE_TIMEOUT_MS = 60_000;
const BACKLOG = 128;
const SOCKET_MODE = 0o600;

export interface LuxiServerOptions {
  readonly socketPath: string;
  /** @throws LuxiRefusal */
  readonly updateConfig: (instance: unknown) => Promise<void>;
  readonly logger: Logger;
}

/** Serves `echo` and `updateConfig` to Ganeti's node daemon. */
export async function listenForGaneti(options: LuxiServerOptions): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serve(socket, options);
  });
  // A closing server removes the path that it was bound to, even if another process has replaced
  // the socket. A private name avoids that.
  const ownName = `${options.socketPath}.${process.pid}`;
  await rm(ownName, { force: true });
  await listenOnUnixSocket(server, ownName, { mode: SOCKET_MODE, backlog: BACKLOG });
  await rename(ownName, options.socketPath);
  const { ino } = await stat(options.socketPath);
  return {
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      const there = await stat(options.socketPath).catch(() => undefined);
      if (there?.ino === ino) await rm(options.socketPath, { force: true });
    },
  };
}

function serve(socket: Socket, options: LuxiServerOptions): void {
  const decoder = new LuxiDecoder(MAX_MESSAGE_BYTES);
  socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    let messages: readonly string[];
    try {
      messages = decoder.push(chunk);
    } catch (error) {
      options.logger.warn('luxi.refused', { error: messageOf(error) });
      socket.destroy();
      return;
    }
    // Later messages stay with the sender until these are answered.
    socket.pause();
    void answerAll(socket, messages, options).finally(() => socket.resume());
  });
}

/** Answers serially and in order. Messages after a malformed one are dropped. */
async function answerAll(
  socket: Socket,
  messages: readonly string[],
  options: LuxiServerOptions,
): Promise<void> {
  for (const message of messages) {
    if (socket.destroyed || socket.writableEnded) return;
    await answer(socket, message, options);
  }
}

async function answer(socket: Socket, message: string, options: LuxiServerOptions): Promise<void> {
  const said = await replyTo(message, options);
  const bytes = encodeLuxi(said.reply);
  if (said.isLast) return void socket.end(bytes);
  if (socket.write(bytes)) return;
  // Stop answering a client that does not read. The idle timeout closes its connection.
  const given = new AbortController();
  const { signal } = given;
  const events = ['drain', 'close'].map((event) => once(socket, event, { signal }));
  // The listener destroys a broken connection.
  await Promise.race(events).catch(() => undefined);
  given.abort();
}

interface Said {
  readonly reply: { readonly success: boolean; readonly result: unknown };
  readonly isLast: boolean;
}

async function replyTo(message: string, options: LuxiServerOptions): Promise<Said> {
  try {
    const request = parseLuxiRequest(message);
    if (request.method === 'updateConfig') await options.updateConfig(request.instance);
    const result = request.method === 'echo' ? request.text : [];
    return { reply: { success: true, result }, isLast: false };
  } catch (error) {
    options.logger.warn('luxi.refused', { error: messageOf(error) });
    if (error instanceof LuxiParseFailure) {
      const result = `Failed to parse request: ${error.message}`;
      return { reply: { success: false, result }, isLast: true };
    }
    const text = error instanceof LuxiRefusal ? error.message : 'internal error';
    return { reply: { success: false, result: ['GenericError', [text]] }, isLast: false };
  }
}
