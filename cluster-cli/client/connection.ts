import type { IncomingMessage } from 'node:http';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import {
  requestOverSocket,
  type Upgraded,
  upgradeOverSocket,
} from '#shared/socket/http-request.ts';

/** How to reach the node daemon: its unix socket. */
export interface Endpoint {
  readonly socketPath: string;
  /** How to start the daemon on this root, for hints. */
  readonly startCommand: string;
  /** Told once, when a request waits for a store that is away. */
  readonly onStoreAway?: (reason: string) => void;
  /** How long it waits for the store at most. */
  readonly storeWaitMs?: number;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte from the daemon; undefined waits for ever, as streams do. */
  readonly idleTimeoutMs?: number;
}

const HEADERS = { host: 'noded', accept: 'application/json, application/x-ndjson, */*' };

/**
 * One request to the daemon, up to the head of its answer.
 * @throws AppError NODED_UNREACHABLE, or the signal's reason.
 */
export async function call(endpoint: Endpoint, options: CallOptions): Promise<IncomingMessage> {
  const { body, signal } = options;
  try {
    return await requestOverSocket({
      ...options,
      on: endpoint.socketPath,
      headers: { ...HEADERS, ...(body && { 'content-type': body.type }) },
      body: body?.bytes,
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw unreachable(endpoint, error);
  }
}

/**
 * Asks for raw bytes in place of HTTP. Both directions of the socket end on their own (half-close).
 * @throws AppError NODED_UNREACHABLE
 */
export async function upgrade(endpoint: Endpoint, path: string): Promise<Upgraded> {
  try {
    return await upgradeOverSocket({ on: endpoint.socketPath, path, headers: HEADERS });
  } catch (error) {
    throw unreachable(endpoint, error);
  }
}

const NOT_RUNNING = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTDIR']);

function unreachable(endpoint: Endpoint, error: unknown): AppError {
  const code = systemCodeOf(error);
  const details = { socket: endpoint.socketPath };
  if (code === 'EACCES' || code === 'EPERM') {
    return new AppError('NODED_UNREACHABLE', `permission denied: ${endpoint.socketPath}`, {
      hint: 'Run the command as root',
      details,
      cause: error,
    });
  }
  const reason = messageOf(error);
  const isStopped = code !== undefined && NOT_RUNNING.has(code);
  return new AppError(
    'NODED_UNREACHABLE',
    `the node daemon cannot be reached at ${endpoint.socketPath}: ${isStopped ? 'it is not running' : reason}`,
    {
      hint: isStopped
        ? `Start it with: ${endpoint.startCommand}`
        : `Read the log of gnt-noded; start it with: ${endpoint.startCommand}`,
      details,
      cause: error,
    },
  );
}
