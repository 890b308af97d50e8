import type { IncomingMessage } from 'node:http';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import {
  requestOverSocket,
  type Upgraded,
  upgradeOverSocket,
} from '#shared/socket/http-request.ts';

/** Address of the node daemon. */
export interface Endpoint {
  readonly socketPath: string;
  /** Shell command that starts the daemon of this root, for hints. */
  readonly startCommand: string;
  /** Called once when a request waits for an unavailable store. */
  readonly onStoreAway?: (reason: string) => void;
  /** Longest wait for the store. */
  readonly storeWaitMs?: number;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte from the daemon; undefined: no limit, for streams. */
  readonly idleTimeoutMs?: number;
}

const HEADERS = { host: 'noded', accept: 'application/json, application/x-ndjson, */*' };

/**
 * Sends a request and returns after the head of its answer.
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
 * Upgrades a connection to raw bytes. Each direction of the socket ends separately (half-close).
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
