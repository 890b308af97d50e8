import { Socket } from 'node:net';
import { z } from 'zod';
import { orAborted } from '#shared/abort/abortable.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { LineSplitter } from '#shared/text/lines.ts';
import { sendDescriptor } from '#shared/sys/descriptors.ts';
import { openUnixClient } from '#shared/sys/unix-sockets.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * A greeting has 1 KiB, an event less. A guest may control QEMU, so a longer line ends the
 * connection.
 */
const MAX_LINE_CHARACTERS = MIB;
/** QEMU limits events that a guest can cause to one per second and kind. */
const MAX_MESSAGES_PER_SECOND = 1000;
const MAX_ERROR_TEXT = 500;
const COMMAND_TIMEOUT_MS = 10_000;

const message = z.union([
  z.object({ QMP: z.object({}).loose() }),
  z.object({ event: z.string().max(64), data: z.record(z.string(), z.unknown()).optional() }),
  z.object({ return: z.unknown(), id: z.number().int() }),
  z.object({
    error: z.object({ class: z.string(), desc: z.string() }),
    id: z.number().int().optional(),
  }),
]);

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface QmpClientOptions {
  readonly socketPath: string;
  readonly onEvent: (event: QmpEvent) => void;
  /** Milliseconds from connecting to the end of the negotiation. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Connects to QEMU's machine protocol (docs/interop/qmp-spec.txt).
 *
 * INVARIANTS: input from QEMU only throws in promises; after `closed` every command is rejected.
 */
export class QmpClient {
  readonly #socket: Socket;
  /** Owned by the socket. */
  readonly #fd: number;
  readonly #onEvent: (event: QmpEvent) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #greeted = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #nextId = 1;
  #isOpen = true;
  #second = 0;
  #messagesThisSecond = 0;

  private constructor(fd: number, onEvent: (event: QmpEvent) => void) {
    const socket = new Socket({ fd, readable: true, writable: true });
    this.#fd = fd;
    this.#socket = socket;
    this.#onEvent = onEvent;
    // connect() handles the rejection. A later one has no handler.
    this.#greeted.promise.catch(() => undefined);
    const splitter = new LineSplitter({ maxLength: MAX_LINE_CHARACTERS, longer: 'refuse' });
    socket.setEncoding('utf8').on('data', (text: string) => {
      try {
        for (const line of splitter.push(text)) if (line.trim() !== '') this.#receive(line);
      } catch (error) {
        this.#end(new AppError('QMP', `QEMU violated the QMP protocol: ${messageOf(error)}`));
      }
    });
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new AppError('QMP', 'QEMU closed its control socket')));
  }

  /** @throws AppError QMP, or the signal's reason */
  static async connect(options: QmpClientOptions): Promise<QmpClient> {
    const { timeoutMs } = options;
    options.signal?.throwIfAborted();
    const client = new QmpClient(openUnixClient(options.socketPath), options.onEvent);
    using deadline = startDeadline(
      options.signal,
      timeoutMs,
      () => new AppError('QMP', `QEMU did not answer within ${timeoutMs / 1000} s`),
    );
    const negotiate = async (): Promise<void> => {
      await client.#greeted.promise;
      await client.execute('qmp_capabilities', {}, timeoutMs);
    };
    try {
      await orAborted(negotiate(), deadline.signal);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Resolves when the connection is closed from either side, after delivery of all earlier events.
   */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** @throws AppError QMP */
  async execute(
    command: string,
    args: Readonly<Record<string, unknown>> = {},
    timeoutMs = COMMAND_TIMEOUT_MS,
  ): Promise<unknown> {
    return this.#ask(command, args, timeoutMs, (line) => this.#socket.write(line));
  }

  /** Passes a copy of a descriptor to QEMU with the command. @throws AppError QMP */
  async executeWith(
    fd: number,
    command: string,
    args: Readonly<Record<string, unknown>> = {},
  ): Promise<unknown> {
    return this.#ask(command, args, COMMAND_TIMEOUT_MS, (line) => {
      if (this.#socket.writableLength > 0)
        throw new AppError('QMP', `${command}: QEMU does not read its control socket`);
      sendDescriptor(this.#fd, line, fd);
    });
  }

  async #ask(
    command: string,
    args: Readonly<Record<string, unknown>>,
    timeoutMs: number,
    send: (line: string) => void,
  ): Promise<unknown> {
    if (!this.#isOpen) throw new AppError('QMP', `${command}: QEMU's control socket is closed`);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(id, { resolve, reject });
    const timeout = setTimeout(() => {
      reject(new AppError('QMP', `${command}: QEMU did not answer within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    try {
      send(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
      return await promise;
    } finally {
      clearTimeout(timeout);
      this.#pending.delete(id);
    }
  }

  close(): void {
    this.#end(new AppError('QMP', 'the connection to QEMU was closed'));
  }

  /** Lets this process exit while the connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  #receive(line: string): void {
    this.#countMessage();
    const parsed = message.parse(JSON.parse(line));
    if ('QMP' in parsed) return this.#greeted.resolve();
    if ('event' in parsed) return this.#onEvent({ name: parsed.event, data: parsed.data ?? {} });
    const pending = parsed.id === undefined ? undefined : this.#pending.get(parsed.id);
    if ('error' in parsed) {
      const text = parsed.error.desc.slice(0, MAX_ERROR_TEXT);
      return pending?.reject(new AppError('QMP', `QEMU refuses: ${text}`));
    }
    pending?.resolve(parsed.return);
  }

  #countMessage(): void {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) this.#messagesThisSecond = 0;
    this.#second = second;
    this.#messagesThisSecond += 1;
    if (this.#messagesThisSecond > MAX_MESSAGES_PER_SECOND) throw new Error('too many messages');
  }

  #end(error: Error): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#socket.destroy();
    this.#greeted.reject(error);
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#closed.resolve();
  }
}
