import { once } from 'node:events';
import { lchownSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { systemCodeOf } from '../errors/app-error.ts';

export interface UnixSocketOptions {
  /** Permissions of the file, which are the only key to the socket. */
  readonly mode: number;
  /** Group of those who may connect; the process' own otherwise. */
  readonly gid?: number;
  /** How many connections may wait to be accepted. */
  readonly backlog?: number;
}

const ALL_PERMISSIONS = 0o777;

/**
 * Binds a socket whose file gets this mode.
 * @param bind is synchronous, so that the process' mask covers it alone
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
 * Listens on a unix socket, at a path where there is nothing.
 *
 * Mode and owner are not changed by name afterwards: in a folder that belongs to somebody else they
 * could be led elsewhere by a link, which `lchown` does not follow.
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
 * Removes the socket that a process which is gone left at the path.
 * @returns whether there is nothing now: the socket of a process that listens there stays
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
