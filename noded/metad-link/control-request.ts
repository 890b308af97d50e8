import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError, messageOf } from '#shared/errors/app-error.ts';

export interface ControlRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: Uint8Array;
  readonly headers?: OutgoingHttpHeaders;
  /** Milliseconds without a byte; 0 waits for ever. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ControlAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface ControlChannel {
  /** The whole answer. @throws AppError METAD_UNAVAILABLE, or the signal's reason */
  ask(request: ControlRequest): Promise<ControlAnswer>;
  /** The answer as it comes. */
  stream(request: ControlRequest): Promise<IncomingMessage>;
  /** Upgrades to a raw stream, or gives the answer that refuses it. */
  upgrade(request: ControlRequest): Promise<Duplex | ControlAnswer>;
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** Larger than any leaf of a tree or queue; metad is not trusted with our memory. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** HTTP on a unix socket. */
export function createControlChannel(socketPath: string): ControlChannel {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const open = (options: ControlRequest, upgrade: boolean) =>
    request({
      socketPath,
      agent: upgrade ? false : agent,
      method: options.method,
      path: options.path,
      headers: {
        host: 'metad',
        ...options.headers,
        ...(options.body && { 'content-length': options.body.length }),
        ...(upgrade && { connection: 'Upgrade', upgrade: 'tcp' }),
      },
      timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      ...(options.signal && { signal: options.signal }),
    });

  const stream = (options: ControlRequest): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const outgoing = open(options, false);
      outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
      outgoing.on('response', resolve);
      outgoing.on('error', (error) => reject(toUnavailable(error, options.signal)));
      outgoing.end(options.body);
    });

  const upgrade = (options: ControlRequest): Promise<Duplex | ControlAnswer> =>
    new Promise((resolve, reject) => {
      const outgoing = open(options, true);
      const fail = (error: unknown): void => reject(toUnavailable(error, options.signal));
      outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
      outgoing.on('upgrade', (_answer, socket, head) => {
        socket.setTimeout(0);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      outgoing.on('response', (answer) => {
        collect(answer, options.signal).then(resolve, fail);
      });
      outgoing.on('error', fail);
      outgoing.end();
    });

  return {
    stream,
    upgrade,
    ask: async (options) => collect(await stream(options), options.signal),
    close: () => agent.destroy(),
  };
}

async function collect(
  answer: IncomingMessage,
  signal: AbortSignal | undefined,
): Promise<ControlAnswer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    // Without an encoding the chunks are Buffers.
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes > MAX_ANSWER_BYTES) throw new Error('its answer is too long');
      chunks.push(chunk);
    }
  } catch (error) {
    throw toUnavailable(error, signal);
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: Buffer.concat(chunks, sizeBytes),
  };
}

function toUnavailable(error: unknown, signal: AbortSignal | undefined): Error {
  if (signal?.aborted && signal.reason instanceof Error) return signal.reason;
  return new AppError('METAD_UNAVAILABLE', `gnt-metad does not answer: ${messageOf(error)}`, {
    hint: 'gnt-noded starts it again by itself; its log is metad.log',
    cause: error,
  });
}
