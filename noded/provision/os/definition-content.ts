import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, lstat, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Definitions for the host may contain the archive of a system. */
const MAX_BYTES = 256 * MIB;
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
const CHUNK_BYTES = MIB;
const PERMISSIONS = 0o777;

interface Walk {
  readonly hash: Hash;
  readonly source: string;
  /** Folder for the copy; null to compute only the digest. */
  readonly target: string | null;
  bytesLeft: number;
  entriesLeft: number;
}

/**
 * Returns the digest of a definition: every name, permission and byte in its folder, in a fixed
 * order. A link to a file counts as its target, wherever that is (Debian's definitions have their
 * variants in /etc).
 * @returns `sha256:` and hex
 * @throws AppError OS_INVALID when the definition is too large or contains anything but files,
 * folders and links within it
 */
export function digestDefinition(path: string): Promise<string> {
  return walkDefinition(path, null);
}

/** Returns the digest as `digestDefinition` does; null for a definition that has none. */
export async function findDigest(path: string): Promise<string | null> {
  try {
    return await digestDefinition(path);
  } catch (error) {
    if (isAppError(error, 'OS_INVALID')) return null;
    throw error;
  }
}

/**
 * Copies a definition into an empty folder. The digest covers the written bytes, so a change of the
 * source during the copy changes the digest too.
 * @returns the digest of the copy, as by `digestDefinition`
 * @throws AppError as digestDefinition
 */
export function copyDefinition(path: string, target: string): Promise<string> {
  return walkDefinition(path, target);
}

async function walkDefinition(source: string, target: string | null): Promise<string> {
  const hash = createHash('sha256');
  const walk: Walk = { hash, source, target, bytesLeft: MAX_BYTES, entriesLeft: MAX_ENTRIES };
  try {
    await addFolder(walk, '', MAX_DEPTH);
  } catch (error) {
    // A full disk is not a fault of the definition.
    const named = nameDiskFull(error);
    if (named instanceof AppError) throw named;
    throw invalid(walk, messageOf(error), error);
  }
  return `sha256:${hash.digest('hex')}`;
}

async function addFolder(walk: Walk, folder: string, depthLeft: number): Promise<void> {
  if (depthLeft === 0) throw invalid(walk, `its folders are nested too deep: ${folder}`);
  const names = await readdir(join(walk.source, folder));
  // By code unit, independent of the locale.
  for (const name of names.sort()) {
    walk.entriesLeft -= 1;
    if (walk.entriesLeft < 0) throw invalid(walk, `it has more than ${MAX_ENTRIES} entries`);
    await addEntry(walk, folder === '' ? name : `${folder}/${name}`, depthLeft);
  }
}

async function addEntry(walk: Walk, name: string, depthLeft: number): Promise<void> {
  const path = join(walk.source, name);
  const stats = await lstat(path);
  if (stats.isDirectory()) {
    const mode = stats.mode & PERMISSIONS;
    count(walk, ['folder', name, mode]);
    if (walk.target !== null) await mkdir(join(walk.target, name), { mode: mode | 0o700 });
    await addFolder(walk, name, depthLeft - 1);
    return;
  }
  if (stats.isSymbolicLink()) return await addLink(walk, name);
  if (!stats.isFile()) throw invalid(walk, `'${name}' is not a file, a folder or a link`);
  // The entry may have become a link since lstat; addFile checks the opened file.
  await using file = await openContent(path);
  await addFile(walk, name, file);
}

/**
 * Adds a link. A link to a file becomes that file. A link to a folder stays a link when no later
 * change outside can redirect it.
 */
async function addLink(walk: Walk, name: string): Promise<void> {
  const path = join(walk.source, name);
  let file: FileHandle;
  try {
    file = await openContent(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    // A dangling link is hashed but not copied, so that no later file at its target can run.
    count(walk, ['nowhere', name, await readlink(path)]);
    return;
  }
  await using opened = file;
  const stats = await opened.stat();
  if (!stats.isDirectory()) return await addFile(walk, name, opened);
  const leadsTo = await readlink(path);
  if (!staysWithin(name, leadsTo))
    throw invalid(walk, `its link '${name}' leads outside of it, to ${leadsTo}`);
  count(walk, ['link', name, leadsTo]);
  if (walk.target !== null) await symlink(leadsTo, join(walk.target, name));
}

/**
 * Tells whether a link to a folder stays within the definition, whatever other links exist: `..`
 * steps come first, at most as many as its own depth, and then only steps down.
 */
function staysWithin(name: string, leadsTo: string): boolean {
  const steps = leadsTo.split('/').filter((step) => step !== '' && step !== '.');
  const ups = steps.findIndex((step) => step !== '..');
  const down = ups === -1 ? [] : steps.slice(ups);
  const depth = name.split('/').length - 1;
  const climbs = ups === -1 ? steps.length : ups;
  return !leadsTo.startsWith('/') && climbs <= depth && !down.includes('..');
}

/** Opens a file. O_NONBLOCK: opening a FIFO must not wait for a writer. */
function openContent(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

async function addFile(walk: Walk, name: string, file: FileHandle): Promise<void> {
  const stats = await file.stat();
  if (!stats.isFile()) throw invalid(walk, `'${name}' is not a regular file`);
  if (stats.size > walk.bytesLeft) throw tooLarge(walk);
  const mode = stats.mode & PERMISSIONS;
  await using copy = walk.target === null ? null : await open(join(walk.target, name), 'wx', 0o600);
  const content = createHash('sha256');
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
    if (bytesRead === 0) break;
    walk.bytesLeft -= bytesRead;
    if (walk.bytesLeft < 0) throw tooLarge(walk);
    const bytes = chunk.subarray(0, bytesRead);
    content.update(bytes);
    await copy?.writeFile(bytes);
  }
  await copy?.chmod(mode);
  count(walk, ['file', name, mode, content.digest('hex')]);
}

/** Hashes an entry as JSON, so that two different entries never give the same bytes. */
function count({ hash }: Walk, entry: readonly (string | number)[]): void {
  hash.update(`${JSON.stringify(entry)}\n`);
}

function tooLarge(walk: Walk): AppError {
  return invalid(walk, `it is larger than ${MAX_BYTES / MIB} MiB`);
}

function invalid({ source }: Walk, reason: string, cause?: unknown): AppError {
  return new AppError(
    'OS_INVALID',
    `the OS definition in '${source}' cannot be trusted: ${reason}`,
    {
      details: { path: source },
      hint: 'A definition for the host holds files, folders and links within itself, at most 256 MiB.',
      cause,
    },
  );
}
