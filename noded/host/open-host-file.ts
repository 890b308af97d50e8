import { constants, type BigIntStats } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { requireTrustedPlace } from './trusted-path.ts';

/**
 * Separates a trusted folder from the path below it, as rsync does. Such a path is valid everywhere
 * else too, so that it can be stored and shown unchanged. openHostFile follows no link behind the
 * mark.
 */
const CUT = '/./';

/** A path below a folder, to be opened without following a link behind it. */
export interface ConfinedPath {
  readonly folder: string;
  readonly parts: readonly string[];
}

/** Returns undefined for a path that is not confined. */
export function parseConfinedPath(path: string): ConfinedPath | undefined {
  const at = path.indexOf(CUT);
  if (at < 0) return undefined;
  return { folder: path.slice(0, at) || '/', parts: path.slice(at + CUT.length).split('/') };
}

/**
 * Confines a path to the innermost folder that contains it.
 * @returns undefined when it is not absolute and plain (`..`, `.`, `//`), or outside of the folders
 */
export function confinePath(path: string, folders: readonly string[]): string | undefined {
  if (!path.startsWith('/') || path.includes('\0') || posix.normalize(path) !== path)
    return undefined;
  const [innermost] = folders
    .filter((folder) => path.startsWith(`${folder}/`) && path.length > folder.length + 1)
    .toSorted((a, b) => b.length - a.length);
  if (innermost === undefined || path.endsWith('/')) return undefined;
  return `${innermost}${CUT}${path.slice(innermost.length + 1)}`;
}

/** Returns the path without its mark. */
export function plainPath(path: string): string {
  return path.replace(CUT, '/');
}

/**
 * Opens a file of this host that an operator or a remote user named. For a confined path, each part
 * behind the folder is opened from the previous descriptor and may not be a link. So the file lies
 * below the folder despite concurrent renames. It must be a regular file; a FIFO does not block.
 * @throws Error with `code` of the system; ELOOP or ENOTDIR for a link, EINVAL for `..` and other
 * file types; AppError HOST_PREREQUISITE when another user may replace the folder
 */
export async function openHostFile(
  path: string,
  flags: number = constants.O_RDONLY,
): Promise<FileHandle> {
  const confined = parseConfinedPath(path);
  if (confined === undefined) return open(path, flags);
  const { folder, parts } = confined;
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw invalid(`${path} is not a plain path below its folder`);
  }
  await requireTrustedPlace(folder, 'a folder whose files the remote API may name');
  const noFollow = constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let at = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    for (const part of parts.slice(0, -1)) {
      const next = await open(below(at, part), constants.O_DIRECTORY | noFollow);
      await at.close();
      at = next;
    }
    const file = await open(below(at, parts.at(-1) ?? ''), flags | noFollow);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw invalid(`${path} is not a regular file`);
  } finally {
    await at.close();
  }
}

/** Returns the status of the file that openHostFile would open. @throws Error as openHostFile */
export async function statHostFile(path: string): Promise<BigIntStats> {
  if (parseConfinedPath(path) === undefined) return stat(path, { bigint: true });
  const file = await openHostFile(path);
  try {
    return await file.stat({ bigint: true });
  } finally {
    await file.close();
  }
}

function invalid(message: string): Error {
  return Object.assign(new Error(message), { code: 'EINVAL' });
}

/** Returns a path to a name in an open folder, in place of `openat`, which Node lacks. */
function below(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}
