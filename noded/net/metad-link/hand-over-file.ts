import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { uuid } from '#shared/contract/primitives.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { sendDescriptor } from '#shared/sys/descriptors.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';

/** fcntl.h: a descriptor of the socket itself, which a link at its path does not lead away. */
const O_PATH = 0o10000000;
const OTHERS_WRITE = 0o022;
/** Codes when metad has no such socket, has gone away, or has not read the files before. */
const NOT_TAKEN = ['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ETOOMANYREFS'];

export interface MetadFileSocket {
  readonly path: string;
  /** Group of metad's user. */
  readonly gid: number;
}

/**
 * Gives metad an open file to read for itself.
 * @param fd open for reading only; stays the caller's
 * @param name that metad waits for it by
 * @returns false when metad gets the bytes in another way
 */
export function handOverFile(fd: number, name: string, socket: MetadFileSocket): boolean {
  // Whoever holds a file can open it anew through /proc, with the rights that it gives to all.
  const file = fstatSync(fd);
  if ((file.mode & OTHERS_WRITE) !== 0 || !uuid.safeParse(name).success) return false;
  try {
    return send(fd, file.uid, name, socket);
  } catch (error) {
    if (NOT_TAKEN.includes(systemCodeOf(error) ?? '')) return false;
    throw error;
  }
}

/**
 * The folder is metad's: what lies there under the name may be anything. A file of metad's own user
 * is not sent: its owner could open it anew to write, or make it so.
 */
function send(fd: number, owner: number, name: string, { path, gid }: MetadFileSocket): boolean {
  const place = openSync(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const found = fstatSync(place);
    if (!found.isSocket() || found.gid !== gid)
      throw new Error(`${path} is not a socket of gnt-metad`);
    // A metad of root's, as in a trial, may write everything anyhow.
    if (found.uid === owner && owner !== 0) return false;
    const from = openUnixDatagrams(null);
    try {
      sendDescriptor(from, name, fd, `/proc/self/fd/${place}`);
      return true;
    } finally {
      closeFd(from);
    }
  } finally {
    closeSync(place);
  }
}
