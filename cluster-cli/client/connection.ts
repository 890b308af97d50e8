import { request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';

/** How to reach the node daemon: its unix socket. */
export interface Endpoint {
  readonly socketPath: string;
  /** For hints: how to start the daemon on this root. */
  readonly startCommand: string;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte from the daemon; undefined waits for ever, as streams do. */
  readonly idleTimeoutMs?: number;
}

/**
 * One request to the daemon, up to the head of its answer.
 * @throws AppError NODED_UNREACHABLE, or the signal's reason.
 */
export async function call(endpoint: Endpoint, options: CallOptions): Promise<IncomingMessage> {
  options.signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const outgoing = request({
      socketPath: endpoint.socketPath,
      method: options.method ?? 'GET',
      path: options.path,
      agent: false,
      headers: {
        host: 'noded',
        accept: 'application/json, application/x-ndjson, */*',
        ...(options.body && {
          'content-type': options.body.type,
          'content-length': options.body.bytes.length,
        }),
      },
      ...(options.signal && { signal: options.signal }),
    });
    if (options.idleTimeoutMs !== undefined) {
      const seconds = options.idleTimeoutMs / 1000;
      outgoing.setTimeout(options.idleTimeoutMs, () => {
        outgoing.destroy(new Error(`no answer within ${seconds} s`));
      });
    }
    outgoing.on('response', resolve);
    outgoing.on('error', (error) => {
      reject(options.signal?.aborted ? abortReason(options.signal) : unreachable(endpoint, error));
    });
    outgoing.end(options.body?.bytes);
  });
}

/** What came back from a request to switch protocols: the raw connection, or the refusal. */
export type Upgraded =
  | { readonly kind: 'socket'; readonly socket: Socket }
  | { readonly kind: 'refused'; readonly response: IncomingMessage };

/**
 * Asks for raw bytes instead of HTTP (`Upgrade: tcp`). Both directions of the socket end on their own (half-close).
 * @throws AppError NODED_UNREACHABLE
 */
export async function upgrade(endpoint: Endpoint, path: string): Promise<Upgraded> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      path,
      headers: { host: 'noded', connection: 'Upgrade', upgrade: 'tcp' },
      // Takes the place of an agent, whose connections know no half-close.
      createConnection: () => connect({ path: endpoint.socketPath, allowHalfOpen: true }),
    });
    outgoing.on('upgrade', (_response, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      // node:http hands out the connection that createConnection made: a net.Socket.
      resolve({ kind: 'socket', socket: socket });
    });
    outgoing.on('response', (response) => resolve({ kind: 'refused', response }));
    outgoing.on('error', (error) => reject(unreachable(endpoint, error)));
    outgoing.end();
  });
}

const NOT_RUNNING = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTDIR']);

function unreachable(endpoint: Endpoint, error: unknown): AppError {
  const code = systemCodeOf(error);
  const details = { socket: endpoint.socketPath };
  if (code === 'EACCES' || code === 'EPERM') {
    return new AppError('NODED_UNREACHABLE', `no permission for ${endpoint.socketPath}`, {
      hint: 'run this command as root',
      details,
      cause: error,
    });
  }
  const reason = error instanceof Error ? error.message : String(error);
  const isStopped = code !== undefined && NOT_RUNNING.has(code);
  return new AppError(
    'NODED_UNREACHABLE',
    `the node daemon cannot be reached at ${endpoint.socketPath}: ${isStopped ? 'it is not running' : reason}`,
    {
      hint: isStopped
        ? `start it with: ${endpoint.startCommand}`
        : `look at the log of gnt-noded; start it with: ${endpoint.startCommand}`,
      details,
      cause: error,
    },
  );
}

function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted');
}
