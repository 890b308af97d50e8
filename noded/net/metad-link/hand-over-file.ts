import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { uuid } from '#shared/contract/primitives.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { sendDescriptor } from '#shared/sys/descriptors.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';

/**
 * fcntl.h: a descriptor of the socket file itself. With O_NOFOLLOW a symbolic link at its path has
 * no effect.
 */
const O_PATH = 0o10000000;
const OTHERS_WRITE = 0o022;
/** Codes when the socket is missing, metad ended, or metad has not read earlier files. */
const NOT_TAKEN = ['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ETOOMANYREFS'];

export interface MetadFileSocket {
  readonly path: string;
  /** Group of metad's user. */
  readonly gid: number;
}

/**
 * Sends metad an open file, so that it reads the bytes itself.
 * @param fd open for reading only; the caller closes it
 * @param name by which metad identifies the file
 * @returns false when metad must get the bytes in another way
 */
export function handOverFile(fd: number, name: string, socket: MetadFileSocket): boolean {
  // A process with the descriptor can reopen the file through /proc, with the permissions that its
  // mode gives to others.
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
 * metad owns the folder and may have placed any file at this path. A file of metad's own user is
 * not sent, because its owner could reopen it for writing or change its mode.
 */
function send(fd: number, owner: number, name: string, { path, gid }: MetadFileSocket): boolean {
  const place = openSync(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const found = fstatSync(place);
    if (!found.isSocket() || found.gid !== gid)
      throw new Error(`${path} is not a socket of gnt-metad`);
    // A metad that runs as root, as in a trial, can write every file anyway.
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
