import { type Dirent, type Stats } from 'node:fs';
import { lstat, readdir, readlink, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Pack, pack } from 'tar-stream';
import { AppError, messageOf, toError } from '#shared/errors/app-error.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { OsDefinition } from './os-definition.ts';

export interface PackedDefinition {
  /** The whole directory: same bytes for the same content. */
  readonly tar: Buffer;
  /** The appliance's scripts by name (`create`), for os/scripts/<name>. */
  readonly scripts: Readonly<Record<string, Buffer>>;
}

/** What a view can carry (`definitionTar`). */
const MAX_TAR_BYTES = 16 * MIB;
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
/** Time is no part of the content. */
const EPOCH = new Date(0);

interface Budget {
  bytesLeft: number;
  entriesLeft: number;
}

/**
 * The definition for the appliance: modes and links are kept, owners and times are not. Links are
 * never followed.
 * @throws AppError OS_INVALID when it is over 16 MiB, holds device files, or an appliance script
 * leads out of it
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
    await addDirectory(archive, definition, '', budget, MAX_DEPTH);
    archive.finalize();
  } catch (error) {
    archive.destroy(toError(error));
    throw error;
  }
}

async function addDirectory(
  archive: Pack,
  definition: OsDefinition,
  folder: string,
  budget: Budget,
  depthLeft: number,
): Promise<void> {
  if (depthLeft === 0) throw invalid(definition, `its folders are nested too deep: ${folder}`);
  const entries = await readdir(join(definition.path, folder), { withFileTypes: true });
  for (const entry of entries.sort(byName)) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
    const stats = await lstat(join(definition.path, name));
    await addEntry(archive, definition, name, stats, budget);
    if (stats.isDirectory()) {
      await addDirectory(archive, definition, name, budget, depthLeft - 1);
    }
  }
}

/** By code unit: the same order whatever the locale. */
function byName(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1;
}

async function addEntry(
  archive: Pack,
  definition: OsDefinition,
  name: string,
  stats: Stats,
  budget: Budget,
): Promise<void> {
  const path = join(definition.path, name);
  const header = { name, mode: stats.mode & 0o7777, mtime: EPOCH, uid: 0, gid: 0 };
  // A header and the padding to 512 count too.
  spend(definition, budget, 1024 + (stats.isFile() ? stats.size : 0));
  if (stats.isDirectory()) {
    archive.entry({ ...header, type: 'directory' });
  } else if (stats.isSymbolicLink()) {
    archive.entry({ ...header, mode: 0o777, type: 'symlink', linkname: await readlink(path) });
  } else if (stats.isFile()) {
    archive.entry(header, await readBounded(path, stats.size, { followLinks: false }));
  } else {
    throw invalid(definition, `'${name}' is neither a file, nor a folder, nor a link`);
  }
}

function spend(definition: OsDefinition, budget: Budget, bytes: number): void {
  budget.bytesLeft -= bytes;
  budget.entriesLeft -= 1;
  if (budget.bytesLeft < 0) throw invalid(definition, 'it is larger than 16 MiB');
  if (budget.entriesLeft < 0) throw invalid(definition, `it has more than ${MAX_ENTRIES} entries`);
}

async function readScripts(definition: OsDefinition): Promise<Record<string, Buffer>> {
  const top = await realpath(definition.path);
  const scripts: Record<string, Buffer> = {};
  for (const [name, path] of Object.entries(definition.applianceScripts)) {
    const real = await realpath(join(top, path));
    if (!real.startsWith(top + sep)) {
      throw invalid(definition, `its script '${path}' leads out of it, to ${real}`);
    }
    scripts[name] = await readBounded(real, MAX_TAR_BYTES, { followLinks: false });
  }
  return scripts;
}

function invalid(definition: OsDefinition, reason: string, cause?: unknown): AppError {
  return new AppError(
    'OS_INVALID',
    `OS '${definition.name}' under path '${definition.path}' cannot be given to the appliance: ${reason}`,
    { details: { os: definition.name, path: definition.path }, cause },
  );
}
