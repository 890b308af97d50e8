import { constants, type BigIntStats } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { requireTrustedPlace } from './trusted-path.ts';

/**
 * Separates a folder that the operator named from what is below it, as rsync does. A path with it
 * is an ordinary path to everybody else, so that it can be stored and shown as it is; whoever opens
 * it here cannot be led out of the folder by a link.
 */
const CUT = '/./';

/** A path below a folder, to be opened without following a link behind it. */
export interface ConfinedPath {
  readonly folder: string;
  readonly parts: readonly string[];
}

/** Undefined for a path that is not confined. */
export function parseConfinedPath(path: string): ConfinedPath | undefined {
  const at = path.indexOf(CUT);
  if (at < 0) return undefined;
  return { folder: path.slice(0, at) || '/', parts: path.slice(at + CUT.length).split('/') };
}

/**
 * The same path, confined to the innermost of the folders that it is below.
 * @returns undefined when it is not absolute and plain (`..`, `.`, `//`), or below none of them
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

/** The path without its mark, as whoever asked for it wrote it. */
export function plainPath(path: string): string {
  return path.replace(CUT, '/');
}

/**
 * Opens a file of this host that an operator or a remote user named. Of a confined path, each part
 * behind the folder is opened from the descriptor of the one before it and may not be a link: what
 * is opened lies below the folder, whatever is renamed meanwhile. At its end must be a regular
 * file; a FIFO is not waited for.
 * @throws Error with `code` of the system; ELOOP or ENOTDIR for a link, EINVAL for `..` and for
 * what is no file; AppError HOST_PREREQUISITE when somebody else may put another folder in its
 * place
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

/** What `stat` tells of the file that is opened by that path. @throws Error as opening it does */
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

/**
 * A name in an open folder, wherever the folder is by now: `openat` for a runtime that has none.
 */
function below(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}
