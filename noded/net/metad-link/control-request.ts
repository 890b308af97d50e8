import { Agent, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { requestOverSocket, upgradeOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';

export interface ControlRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: Uint8Array;
  readonly headers?: OutgoingHttpHeaders;
  /** Milliseconds without a byte; 0 means no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ControlAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** Larger than any leaf of a tree or queue. metad must not exhaust this daemon's memory. */
const MAX_ANSWER_BYTES = 64 * MIB;

/** Speaks HTTP on a unix socket. */
export function createControlChannel(socketPath: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const onSocket = ({ timeoutMs = DEFAULT_TIMEOUT_MS, headers, ...options }: ControlRequest) => ({
    ...options,
    on: socketPath,
    headers: { host: 'metad', ...headers },
    idleTimeoutMs: timeoutMs,
  });
  return {
    /** Returns the answer before its body. */
    stream: (options: ControlRequest): Promise<IncomingMessage> =>
      reaching(options, () => requestOverSocket({ ...onSocket(options), agent })),
    /** Upgrades to a raw stream, or returns the answer that refuses it. */
    upgrade: (options: ControlRequest): Promise<Duplex | ControlAnswer> =>
      reaching(options, async () => {
        const upgraded = await upgradeOverSocket(onSocket(options));
        return upgraded.kind === 'raw' ? upgraded.socket : readAnswer(upgraded.answer);
      }),
    /** Returns the whole answer. @throws AppError METAD_UNAVAILABLE, or the signal's reason */
    ask: (options: ControlRequest): Promise<ControlAnswer> =>
      reaching(options, async () =>
        readAnswer(await requestOverSocket({ ...onSocket(options), agent })),
      ),
    close: (): void => agent.destroy(),
  };
}

export type ControlChannel = ReturnType<typeof createControlChannel>;

async function readAnswer(answer: IncomingMessage): Promise<ControlAnswer> {
  const body = await collect(answer, MAX_ANSWER_BYTES);
  return { status: answer.statusCode ?? 0, headers: answer.headers, body };
}

async function reaching<T>({ signal }: ControlRequest, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    signal?.throwIfAborted();
    throw new AppError('METAD_UNAVAILABLE', `gnt-metad does not answer: ${messageOf(error)}`, {
      hint: 'gnt-noded restarts it automatically. Its log is metad.log.',
      cause: error,
    });
  }
}
