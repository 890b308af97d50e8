import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, lstat, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * A definition for the host may bring an archive of a system along; beyond this it is no
 * definition.
 */
const MAX_BYTES = 256 * MIB;
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
const CHUNK_BYTES = MIB;
const PERMISSIONS = 0o777;

interface Walk {
  readonly hash: Hash;
  readonly source: string;
  /** Folder in which the same content is made; null when only the digest is asked for. */
  readonly target: string | null;
  bytesLeft: number;
  entriesLeft: number;
}

/**
 * Digest over all that a definition is: every name, permission and byte in its folder, in one
 * order. A link to a file counts as the file that it leads to, wherever that is (Debian's
 * definitions have their variants in /etc).
 * @returns `sha256:` and hex
 * @throws AppError OS_INVALID when it is too large or holds what is no file, folder or link within
 * it
 */
export function digestDefinition(path: string): Promise<string> {
  return walkDefinition(path, null);
}

/**
 * Copies a definition into a folder that is there and empty. The bytes that are written are those
 * that are counted: what changes at the source meanwhile changes the digest too.
 * @returns the digest of the copy, as `digestDefinition` has it
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
    // A copy that finds no room says nothing of the definition.
    const named = nameDiskFull(error);
    if (named instanceof AppError) throw named;
    throw invalid(walk, messageOf(error), error);
  }
  return `sha256:${hash.digest('hex')}`;
}

async function addFolder(walk: Walk, folder: string, depthLeft: number): Promise<void> {
  if (depthLeft === 0) throw invalid(walk, `its folders are nested too deep: ${folder}`);
  const names = await readdir(join(walk.source, folder));
  // By code unit: the same order whatever the locale.
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
  // It may be something else by now, a link too: what is opened is what counts.
  await using file = await openContent(path);
  await addFile(walk, name, file);
}

/**
 * A link to a file becomes that file; one to a folder stays, when no later change outside can lead
 * it elsewhere.
 */
async function addLink(walk: Walk, name: string): Promise<void> {
  const path = join(walk.source, name);
  let file: FileHandle;
  try {
    file = await openContent(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    // Nothing can be copied of a link to nowhere, and nobody can put something there later.
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
 * Whether a link to a folder leads to a place within the definition whatever other links there are:
 * up first, as often as its own folder is deep at most, and then only down.
 */
function staysWithin(name: string, leadsTo: string): boolean {
  const steps = leadsTo.split('/').filter((step) => step !== '' && step !== '.');
  const ups = steps.findIndex((step) => step !== '..');
  const down = ups === -1 ? [] : steps.slice(ups);
  const depth = name.split('/').length - 1;
  const climbs = ups === -1 ? steps.length : ups;
  return !leadsTo.startsWith('/') && climbs <= depth && !down.includes('..');
}

/** O_NONBLOCK: opening a FIFO must not wait for a writer. */
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

/** Hashes an entry as JSON, so that no name can be taken for something else. */
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
