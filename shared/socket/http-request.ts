import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type RequestOptions,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { abortReason } from '../abort/abortable.ts';
import { systemCodeOf } from '../errors/app-error.ts';

export interface UpgradeRequest {
  readonly on: string | Duplex;
  readonly method?: string | undefined;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** Limit of milliseconds without a byte; none by default. */
  readonly idleTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SocketRequest extends UpgradeRequest {
  readonly body?: Uint8Array | undefined;
  /**
   * A body of any length, in place of `body`. The caller frames it by its headers. It stays usable
   * after a failure.
   */
  readonly stream?: Readable | undefined;
  /** Keeps connections to the socket; none are kept by default. */
  readonly agent?: Agent | undefined;
}

/** The result of an upgrade request: the raw connection, or the refusing response. */
export type Upgraded =
  | { readonly kind: 'raw'; readonly socket: Socket }
  | { readonly kind: 'refused'; readonly answer: IncomingMessage };

/**
 * Sends a request, and returns the head of its response; the caller reads or destroys the body. A
 * busy process may notice late that a kept connection was closed. A repeatable request is then sent
 * again on its own connection.
 * @throws the system's error, or the signal's reason
 */
export async function requestOverSocket(options: SocketRequest): Promise<IncomingMessage> {
  const { on, headers, body, stream, agent = false } = options;
  const outgoing = request({
    ...(typeof on === 'string' ? { socketPath: on, agent } : { createConnection: () => on }),
    ...commonOptions(options),
    headers: { ...headers, ...(body && { 'content-length': body.length }) },
  });
  try {
    return await answerOf(outgoing, options, (resolve) => {
      outgoing.on('response', resolve);
      if (stream) sendStream(stream, outgoing);
      else outgoing.end(body);
    });
  } catch (error) {
    const isClosed = ['ECONNRESET', 'EPIPE'].includes(systemCodeOf(error) ?? '');
    const isRepeatable = options.method !== 'POST' && stream === undefined;
    if (!outgoing.reusedSocket || !isClosed || !isRepeatable) throw error;
    return requestOverSocket({ ...options, agent: undefined });
  }
}

/** An incomplete body must not look complete. */
export function sendStream(stream: Readable, outgoing: ClientRequest): void {
  stream.on('close', () => {
    if (!stream.readableEnded) outgoing.destroy(new Error('the client disconnected'));
  });
  stream.pipe(outgoing);
}

/**
 * Requests raw bytes in place of HTTP (`Upgrade: tcp`). Both directions of the connection end
 * separately.
 * @throws the system's error, or the signal's reason
 */
export async function upgradeOverSocket(options: UpgradeRequest): Promise<Upgraded> {
  const { on } = options;
  const outgoing = request({
    // Replaces the agent, whose connections do not support half-close.
    createConnection: () =>
      typeof on === 'string' ? connect({ path: on, allowHalfOpen: true }) : on,
    ...commonOptions(options),
    headers: { ...options.headers, connection: 'Upgrade', upgrade: 'tcp' },
  });
  return answerOf<Upgraded>(outgoing, options, (resolve) => {
    outgoing.on('upgrade', (_answer, socket, head) => {
      if (typeof on === 'string') socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve({ kind: 'raw', socket });
    });
    outgoing.on('response', (answer) => resolve({ kind: 'refused', answer }));
    outgoing.end();
  });
}

type Common = Omit<UpgradeRequest, 'on'>;

/** Without it Node tests whether `host` is an address, by expressions that it compiles first. */
const NO_TLS = { servername: '' } as const;

function commonOptions({ method, path, idleTimeoutMs, signal }: Common): RequestOptions {
  return { method, path, timeout: idleTimeoutMs, signal, ...NO_TLS };
}

function answerOf<T>(
  outgoing: ClientRequest,
  { idleTimeoutMs = 0, signal }: Common,
  send: (resolve: (answer: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    outgoing.on('timeout', () => {
      outgoing.destroy(new Error(`no answer within ${idleTimeoutMs / 1000} s`));
    });
    // After the head, errors are reported to the body's reader only, but still need a listener.
    outgoing.on('error', (error) => reject(signal?.aborted ? abortReason(signal) : error));
    // Node reports no error after an unrequested status 101.
    outgoing.on('close', () => reject(new Error('the connection closed without an answer')));
    send(resolve);
  });
}
