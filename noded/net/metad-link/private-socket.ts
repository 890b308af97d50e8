import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';

const OTHERS_WRITE = 0o002;
const OTHERS_ENTER = 0o001;

/**
 * Refuses a socket that every user can connect to. A service trusts the PROXY header of its
 * clients, so such a socket protects no better than a port.
 * @throws Error with the command to run
 */
export async function checkSocketIsPrivate(path: string): Promise<void> {
  const socket = await lstat(path);
  if (!socket.isSocket()) throw new Error(`${path} is not a socket`);
  if ((socket.mode & OTHERS_WRITE) === 0 || !(await isReachedByOthers(path))) return;
  throw new Error(
    `every user of this host can connect to ${path} and pose as any instance: run chmod o-w ${path}`,
  );
}

async function isReachedByOthers(path: string): Promise<boolean> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (((await lstat(folder)).mode & OTHERS_ENTER) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
