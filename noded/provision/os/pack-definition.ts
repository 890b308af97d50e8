import type { Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Pack, pack } from 'tar-stream';
import { AppError, messageOf, toError } from '#shared/errors/app-error.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { setOwn } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';
import { pinDirectory, pinFile, type PinnedFile } from '../../host/pinned-file.ts';
import type { OsDefinition } from './os-definition.ts';

export interface PackedDefinition {
  /** Equal content gives equal bytes. */
  readonly tar: Buffer;
  /** Appliance scripts by name (`create`), for os/scripts/<name>. */
  readonly scripts: Readonly<Record<string, Buffer>>;
}

/** The limit of `definitionTar` in a view. */
const MAX_TAR_BYTES = 16 * MIB;
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
/** Equal content must give equal bytes, so times are dropped. */
const EPOCH = new Date(0);

interface Budget {
  bytesLeft: number;
  entriesLeft: number;
}

/**
 * Packs a definition for the appliance. Modes and links are kept, owners and times are dropped.
 * Links are never followed.
 * @throws AppError OS_INVALID when the definition exceeds 16 MiB, contains device files, or has an
 * appliance script outside its folder
 */
export async function packDefinition(definition: OsDefinition): Promise<PackedDefinition> {
  try {
    const archive = pack();
    const [tar] = await Promise.all([buffer(archive), fill(archive, definition)]);
    return { tar, scripts: await readScripts(definition) };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw invalid(definition, messageOf(error), error);
  }
}

async function fill(archive: Pack, definition: OsDefinition): Promise<void> {
  try {
    const budget = { bytesLeft: MAX_TAR_BYTES, entriesLeft: MAX_ENTRIES };
    await using top = await pinDirectory(definition.path);
    await addDirectory({ archive, definition, budget }, top, '', MAX_DEPTH);
    archive.finalize();
  } catch (error) {
    archive.destroy(toError(error));
    throw error;
  }
}

interface Packing {
  readonly archive: Pack;
  readonly definition: OsDefinition;
  readonly budget: Budget;
}

/**
 * @param at the opened folder. A user who can write to the definition could otherwise replace the
 * folder with a link to files that only root can read.
 */
async function addDirectory(
  packing: Packing,
  at: PinnedFile,
  folder: string,
  depthLeft: number,
): Promise<void> {
  const { definition } = packing;
  if (depthLeft === 0) throw invalid(definition, `its folders are nested too deep: ${folder}`);
  // By code unit, independent of the locale.
  for (const entry of (await readdir(at.path)).sort()) {
    const name = folder === '' ? entry : `${folder}/${entry}`;
    const path = `${at.path}/${entry}`;
    const stats = await lstat(path);
    await addEntry(packing, name, path, stats);
    if (!stats.isDirectory()) continue;
    await using below = await pinDirectory(path, 'refused');
    await addDirectory(packing, below, name, depthLeft - 1);
  }
}

async function addEntry(
  { archive, definition, budget }: Packing,
  name: string,
  path: string,
  stats: Stats,
): Promise<void> {
  const header = { name, mode: stats.mode & 0o7777, mtime: EPOCH, uid: 0, gid: 0 };
  // 512 bytes of header, and at most 512 of padding.
  spend(definition, budget, 1024 + (stats.isFile() ? stats.size : 0));
  if (stats.isDirectory()) {
    archive.entry({ ...header, type: 'directory' });
  } else if (stats.isSymbolicLink()) {
    archive.entry({ ...header, mode: 0o777, type: 'symlink', linkname: await readlink(path) });
  } else if (stats.isFile()) {
    archive.entry(header, await readBounded(path, stats.size, { followLinks: false }));
  } else {
    throw invalid(definition, `'${name}' is not a file, a folder or a link`);
  }
}

function spend(definition: OsDefinition, budget: Budget, bytes: number): void {
  budget.bytesLeft -= bytes;
  budget.entriesLeft -= 1;
  if (budget.bytesLeft < 0) throw invalid(definition, 'it is larger than 16 MiB');
  if (budget.entriesLeft < 0) throw invalid(definition, `it has more than ${MAX_ENTRIES} entries`);
}

/**
 * Reads the appliance scripts. A script may be a link within the definition; the check uses the
 * path of the opened file, which cannot change.
 */
async function readScripts(definition: OsDefinition): Promise<Record<string, Buffer>> {
  await using top = await pinDirectory(definition.path);
  const topPath = await readlink(top.path);
  const scripts: Record<string, Buffer> = {};
  for (const [name, path] of Object.entries(definition.applianceScripts)) {
    await using file = await pinFile(`${top.path}/${path}`, 'followed');
    const real = await readlink(file.path);
    if (!real.startsWith(topPath + sep)) {
      throw invalid(definition, `its script '${path}' leads outside of it, to ${real}`);
    }
    setOwn(scripts, name, await readBounded(file.path, MAX_TAR_BYTES));
  }
  return scripts;
}

function invalid(definition: OsDefinition, reason: string, cause?: unknown): AppError {
  return new AppError(
    'OS_INVALID',
    `OS '${definition.name}' under path '${definition.path}' cannot be passed to the appliance: ${reason}`,
    { details: { os: definition.name, path: definition.path }, cause },
  );
}
