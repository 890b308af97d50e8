import { constants, createReadStream, createWriteStream } from 'node:fs';
import { chmod, copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract } from 'tar-stream';
import {
  applianceName,
  BUILT_APPLIANCE,
  type ApplianceManifest,
} from '#shared/contract/appliance-manifest.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { GIB } from '#shared/units/bytes.ts';
import { MANIFEST_NAME, readManifest, verifyAppliance } from './manifest.ts';

/** An appliance that somebody else made, as it is on this node. */
export interface ImportedAppliance {
  readonly name: string;
  readonly directory: string;
  readonly state: 'intact' | 'corrupt';
  /** What it is made of, or what is wrong with it. */
  readonly detail: string;
}

/** A manifest, a kernel, an initramfs and a root, with room for what a maker adds. */
const MAX_ENTRIES = 64;
const MAX_TAR_BYTES = 16 * GIB;
const GZIP_MAGIC = 0x1f8b;
const PLAIN_NAME = /^(\.\/)?([A-Za-z0-9_+][A-Za-z0-9_.+-]{0,127})$/;
const FRESH = '.import-';

/** `web.tar.gz` → `web` @throws AppError VALIDATION */
export function nameOf(source: string, given: string | undefined): string {
  const name = given ?? basename(source).replace(/\.(tar|tar\.gz|tgz)$/, '');
  if (applianceName.safeParse(name).success && name !== BUILT_APPLIANCE) return name;
  throw new AppError('VALIDATION', `'${name}' is no name for an appliance`, {
    hint: `give another one: --name NAME, of letters, digits and . _ -; ${BUILT_APPLIANCE} is the one that gnt-appliance build makes`,
  });
}

/**
 * Takes an appliance in, out of a folder or a tar of one: the files that its manifest names and
 * nothing else, compared with it before it has its name. One of that name is replaced as a whole.
 * @param source a folder, or a tar, gzip-compressed or not
 * @throws AppError APPLIANCE_MISSING, APPLIANCE_CORRUPT naming the file, VALIDATION
 */
export async function importAppliance(
  source: string,
  name: string,
  importedDir: string,
): Promise<ApplianceManifest> {
  await mkdir(importedDir, { recursive: true, mode: 0o755 });
  const fresh = join(importedDir, `${FRESH}${process.pid}`);
  const old = join(importedDir, `${FRESH}old-${process.pid}`);
  await removeLeftovers(importedDir);
  try {
    await mkdir(fresh, { mode: 0o755 });
    const found = await stat(source).catch((error: unknown) => {
      throw unreadable(source, error);
    });
    if (found.isDirectory()) await copyFolder(source, fresh);
    else await unpack(source, fresh);
    const manifest = await verifyAppliance(fresh);
    await keepOnly(fresh, manifest);
    await rename(join(importedDir, name), old).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw error;
    });
    await rename(fresh, join(importedDir, name));
    await syncPath(importedDir);
    return manifest;
  } finally {
    await rm(fresh, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}

/** By name; those that are damaged as well. */
export async function listImported(importedDir: string): Promise<readonly ImportedAppliance[]> {
  let names: string[];
  try {
    names = await readdir(importedDir);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
  const found: ImportedAppliance[] = [];
  for (const name of names.filter((each) => applianceName.safeParse(each).success).sort()) {
    const directory = join(importedDir, name);
    try {
      const { kernelVersion } = await verifyAppliance(directory);
      found.push({ name, directory, state: 'intact', detail: `kernel ${kernelVersion}` });
    } catch (error) {
      found.push({ name, directory, state: 'corrupt', detail: messageOf(error) });
    }
  }
  return found;
}

async function copyFolder(source: string, fresh: string): Promise<void> {
  const { kernel, initrd, root } = await readManifest(source);
  for (const name of [MANIFEST_NAME, kernel.name, initrd.name, root.name]) {
    try {
      await copyFile(join(source, name), join(fresh, name), constants.COPYFILE_FICLONE);
    } catch (error) {
      throw unreadable(join(source, name), error);
    }
    await chmod(join(fresh, name), 0o644);
  }
}

/** @throws AppError APPLIANCE_CORRUPT for what is no such tar */
async function unpack(source: string, fresh: string): Promise<void> {
  const reader = extract();
  try {
    const isGzip = (await firstBytes(source)) === GZIP_MAGIC;
    const bytes = createReadStream(source);
    const unpacked = isGzip ? createGunzip() : new PassThrough();
    const [taken, fed] = await Promise.allSettled([
      takeEntries(reader, fresh),
      pipeline(bytes, unpacked, reader),
    ]);
    // What was wrong with an entry ends the feeding too, and says more.
    if (taken.status === 'rejected') throw taken.reason;
    if (fed.status === 'rejected') throw fed.reason;
  } catch (error) {
    throw unreadable(source, error);
  }
}

async function takeEntries(reader: Extract, fresh: string): Promise<void> {
  let [entries, bytes] = [0, 0];
  for await (const entry of reader) {
    const { name: path, type, size = 0 } = entry.header;
    entries += 1;
    bytes += size;
    if (entries > MAX_ENTRIES) throw new Error(`it has more than ${MAX_ENTRIES} entries`);
    if (bytes > MAX_TAR_BYTES) throw new Error(`it has more than ${MAX_TAR_BYTES / GIB} GiB`);
    const [, , name] = PLAIN_NAME.exec(path) ?? [];
    // The folder itself, and what no manifest can name, are passed over.
    if (type !== 'file' || name === undefined) entry.resume();
    else await pipeline(entry, createWriteStream(join(fresh, name), { flags: 'wx', mode: 0o644 }));
  }
}

async function firstBytes(source: string): Promise<number> {
  const file = await open(source, 'r');
  try {
    const bytes = Buffer.alloc(2);
    await file.read(bytes, 0, bytes.length, 0);
    return bytes.readUInt16BE();
  } finally {
    await file.close();
  }
}

async function keepOnly(fresh: string, manifest: ApplianceManifest): Promise<void> {
  const { kernel, initrd, root } = manifest;
  const named = [MANIFEST_NAME, kernel.name, initrd.name, root.name];
  for (const name of await readdir(fresh)) {
    const path = join(fresh, name);
    if (named.includes(name)) await syncPath(path);
    else await rm(path);
  }
  await syncPath(fresh);
}

async function removeLeftovers(importedDir: string): Promise<void> {
  for (const name of await readdir(importedDir))
    if (name.startsWith(FRESH)) await rm(join(importedDir, name), { recursive: true, force: true });
}

function unreadable(path: string, error: unknown): AppError {
  return new AppError('APPLIANCE_CORRUPT', `${path} cannot be taken in: ${messageOf(error)}`, {
    hint: 'give a folder with manifest.json and the files that it names, or a tar of one',
    cause: error,
  });
}
