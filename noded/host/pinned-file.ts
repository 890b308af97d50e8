import { type BigIntStats, constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openHostFile } from './open-host-file.ts';

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_DIRECTORY } = constants;

/**
 * A file that is open: whatever becomes of its path, this is what was checked. `path` leads to the
 * open file itself, for as long as it is open and in this process, so that it can be opened again
 * with other flags.
 */
export interface PinnedFile extends AsyncDisposable {
  readonly path: string;
  readonly handle: FileHandle;
  readonly found: BigIntStats;
}

export type Links = 'followed' | 'refused';

/**
 * Opens a regular file once. A FIFO is not waited for.
 * @param links whether the last part of the path may be a symbolic link
 * @throws the system's error, or an Error that says what it is instead
 */
export async function pinFile(path: string, links: Links): Promise<PinnedFile> {
  const flags = O_RDONLY | O_NONBLOCK | (links === 'refused' ? O_NOFOLLOW : 0);
  return pin(path, flags, (found) => found.isFile(), 'it is not a regular file');
}

/**
 * A directory whose entries are reached through what is open, `${path}/name`, whatever its own path
 * leads to meanwhile.
 */
export async function pinDirectory(path: string, links: Links = 'followed'): Promise<PinnedFile> {
  const flags = O_RDONLY | O_DIRECTORY | (links === 'refused' ? O_NOFOLLOW : 0);
  return pin(path, flags, (found) => found.isDirectory(), 'it is not a directory');
}

async function pin(
  path: string,
  flags: number,
  isRight: (found: BigIntStats) => boolean,
  wrong: string,
): Promise<PinnedFile> {
  const handle = await openHostFile(path, flags);
  try {
    const found = await handle.stat({ bigint: true });
    if (!isRight(found)) throw new Error(found.isDirectory() ? 'it is a directory' : wrong);
    return {
      path: `/proc/self/fd/${handle.fd}`,
      handle,
      found,
      [Symbol.asyncDispose]: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Whether the file was neither replaced nor written between the two. */
export function isSameFile(a: BigIntStats, b: BigIntStats): boolean {
  return (['dev', 'ino', 'size', 'mtimeNs'] as const).every((field) => a[field] === b[field]);
}
