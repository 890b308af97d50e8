import { once } from 'node:events';
import { lchownSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { systemCodeOf } from '../errors/app-error.ts';

export interface UnixSocketOptions {
  /** Permissions of the file, the only access control of the socket. */
  readonly mode: number;
  /** Group that may connect; the process' own by default. */
  readonly gid?: number;
  readonly backlog?: number;
}

const ALL_PERMISSIONS = 0o777;

/**
 * Binds a socket whose file gets this mode.
 * @param bind must be synchronous, since the umask is that of the process
 */
export function bindWithMode<T>(mode: number, bind: () => T): T {
  const mask = process.umask(ALL_PERMISSIONS & ~mode);
  try {
    return bind();
  } finally {
    process.umask(mask);
  }
}

/**
 * Listens on a unix socket, at a free path.
 *
 * The mode is not changed by name afterwards, and the owner only by `lchown`: in a folder of
 * another user a link could lead elsewhere.
 */
export async function listenOnUnixSocket(
  server: Server,
  path: string,
  { mode, gid, backlog }: UnixSocketOptions,
): Promise<void> {
  const listening = once(server, 'listening');
  bindWithMode(mode, () => server.listen(backlog === undefined ? { path } : { path, backlog }));
  try {
    if (gid !== undefined && server.listening) lchownSync(path, 0, gid);
  } finally {
    await listening;
  }
}

/**
 * Removes a socket that an ended process left at the path.
 * @returns whether the path is free; the socket of a listening process stays
 */
export async function freeSocketPath(path: string): Promise<boolean> {
  const probe = connect(path);
  try {
    await once(probe, 'connect');
    return false;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return true;
    if (systemCodeOf(error) !== 'ECONNREFUSED') throw error;
    await rm(path, { force: true });
    return true;
  } finally {
    probe.destroy();
  }
}
