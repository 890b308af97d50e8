import { type BigIntStats, constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openHostFile } from './open-host-file.ts';

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_DIRECTORY } = constants;

/**
 * An open file that a check and later uses share, whatever happens to its path. While it is open,
 * this process can reopen it by `path` with other flags.
 */
export interface PinnedFile extends AsyncDisposable {
  readonly path: string;
  readonly handle: FileHandle;
  readonly found: BigIntStats;
}

export type Links = 'followed' | 'refused';

/**
 * Opens a regular file. A FIFO does not block.
 * @param links whether the last part of the path may be a symbolic link
 * @throws the system's error, or an Error that names the other file type
 */
export async function pinFile(path: string, links: Links): Promise<PinnedFile> {
  const flags = O_RDONLY | O_NONBLOCK | (links === 'refused' ? O_NOFOLLOW : 0);
  return pin(path, flags, (found) => found.isFile(), 'it is not a regular file');
}

/** Opens a directory. `${path}/name` reaches its entries even after it was renamed or replaced. */
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

/** Returns whether the file was neither replaced nor written between two calls of `stat`. */
export function isSameFile(a: BigIntStats, b: BigIntStats): boolean {
  return (['dev', 'ino', 'size', 'mtimeNs'] as const).every((field) => a[field] === b[field]);
}
