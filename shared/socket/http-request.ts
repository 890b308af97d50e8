import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type RequestOptions,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { abortReason } from '../abort/abortable.ts';
import { systemCodeOf } from '../errors/app-error.ts';

export interface UpgradeRequest {
  /** The path of a unix socket, or a connection that is open already. */
  readonly on: string | Duplex;
  readonly method?: string | undefined;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** Milliseconds without a byte before it is given up; for ever if not given. */
  readonly idleTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SocketRequest extends UpgradeRequest {
  readonly body?: Uint8Array | undefined;
  /** Keeps connections to the socket; none is kept if not given. */
  readonly agent?: Agent | undefined;
}

/**
 * What came back from a request to switch protocols: the raw connection, or the answer that refuses
 * it.
 */
export type Upgraded =
  | { readonly kind: 'raw'; readonly socket: Socket }
  | { readonly kind: 'refused'; readonly answer: IncomingMessage };

/**
 * One request, up to the head of its answer; the body is the caller's to read or to destroy. Where
 * a connection that was kept turns out to be closed, which a busy process learns too late, what may
 * be asked twice is asked again by a connection of its own.
 * @throws the system's error, or the signal's reason
 */
export async function requestOverSocket(options: SocketRequest): Promise<IncomingMessage> {
  const { on, headers, body, agent = false } = options;
  const outgoing = request({
    ...(typeof on === 'string' ? { socketPath: on, agent } : { createConnection: () => on }),
    ...commonOptions(options),
    headers: { ...headers, ...(body && { 'content-length': body.length }) },
  });
  try {
    return await answerOf(outgoing, options, (resolve) => {
      outgoing.on('response', resolve);
      outgoing.end(body);
    });
  } catch (error) {
    const isClosed = ['ECONNRESET', 'EPIPE'].includes(systemCodeOf(error) ?? '');
    if (!outgoing.reusedSocket || !isClosed || options.method === 'POST') throw error;
    return requestOverSocket({ ...options, agent: undefined });
  }
}

/**
 * Asks for raw bytes in place of HTTP (`Upgrade: tcp`). Both directions of the connection end on
 * their own.
 * @throws the system's error, or the signal's reason
 */
export async function upgradeOverSocket(options: UpgradeRequest): Promise<Upgraded> {
  const { on } = options;
  const outgoing = request({
    // This takes the place of an agent, whose connections know no half-close.
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

/** Without it Node looks whether `host` is an address, by expressions that it compiles first. */
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
    // Errors are heard after the head has come, too: then only the body's reader is told.
    outgoing.on('error', (error) => reject(signal?.aborted ? abortReason(signal) : error));
    send(resolve);
  });
}
