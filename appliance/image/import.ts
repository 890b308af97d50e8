import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { machine, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import {
  applianceName,
  BUILT_APPLIANCE,
  type ApplianceManifest,
} from '#shared/contract/appliance-manifest.ts';
import { describeUnfit } from '#shared/contract/unfit-appliance.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { exchangePaths } from '#shared/sys/files.ts';
import { acquireLock } from './lock.ts';
import { MANIFEST_NAME, verifyAppliance } from './manifest.ts';
import { IMPORT_HINT, takeIn } from './take-in.ts';

/** An imported appliance on this node. */
export interface ImportedAppliance {
  readonly name: string;
  readonly directory: string;
  readonly state: 'intact' | 'corrupt';
  /** Its kernel, or the reason why it is corrupt. */
  readonly detail: string;
}

export interface ImportOptions {
  readonly signal: AbortSignal;
  /** Called once when another import on this node is running. */
  readonly onWait: () => void;
}

const FRESH = '.import-';
/** Name prefix of an appliance that is being replaced. */
const FORMER = '.former-';
/** Readable by its owner only, since a process that can open a file can lock it. */
const LOCK = '.lock';

/** Reserved words of --appliance. */
const WORDS: readonly string[] = [BUILT_APPLIANCE, 'none'];

/** Derives the name: `web.tar.gz` becomes `web`. @throws AppError VALIDATION */
export function nameOf(source: string, given: string | undefined): string {
  const name = given ?? basename(source).replace(/\.(tar|tar\.gz|tgz)$/, '');
  if (applianceName.safeParse(name).success && !WORDS.includes(name)) return name;
  throw new AppError('VALIDATION', `'${name}' is not an appliance name`, {
    hint: `Choose another name with --name NAME: letters, digits and . _ -. The words ${WORDS.join(' and ')} are reserved.`,
  });
}

/**
 * Imports an appliance from a folder or a tar archive: only the files in its manifest, verified
 * before other users can read them and before it has its name. Replaces an appliance of that name
 * as a whole. Imports are serialized. Each import cleans up after killed ones.
 * @param source a folder, or a tar, gzip-compressed or not
 * @throws AppError APPLIANCE_MISSING, APPLIANCE_CORRUPT naming the file, VALIDATION when it cannot
 * run here; the signal's reason, with nothing changed
 */
export async function importAppliance(
  source: string,
  name: string,
  importedDir: string,
  { signal, onWait }: ImportOptions,
): Promise<ApplianceManifest> {
  await makeImportedDir(importedDir);
  const lock = await acquireLock(join(importedDir, LOCK), { onWait, signal });
  try {
    await settleLeftovers(importedDir);
    // Of mode 0700, whatever the umask.
    const fresh = await mkdtemp(join(importedDir, FRESH));
    try {
      const manifest = await bring(source, fresh, signal);
      signal.throwIfAborted();
      await putInPlace(fresh, importedDir, name);
      return manifest;
    } finally {
      // Contains the replaced appliance after an exchange.
      await rm(fresh, { recursive: true, force: true });
    }
  } catch (error) {
    // A failure after an interruption reports the interruption.
    signal.throwIfAborted();
    throw error;
  } finally {
    await lock.release();
  }
}

/**
 * Removes an imported appliance. New installations no longer find it at once.
 * @throws AppError APPLIANCE_MISSING; the signal's reason, with nothing changed
 */
export async function removeImported(
  name: string,
  importedDir: string,
  { signal, onWait }: ImportOptions,
): Promise<void> {
  await makeImportedDir(importedDir);
  const lock = await acquireLock(join(importedDir, LOCK), { onWait, signal });
  try {
    // Moved first to a name that the next import clears, in case this process is killed.
    const leaving = await mkdtemp(join(importedDir, FRESH));
    try {
      await rename(join(importedDir, name), join(leaving, name));
      await syncPath(importedDir);
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') throw error;
      throw new AppError('APPLIANCE_MISSING', `this node has no imported appliance '${name}'`, {
        hint: 'List the appliances: gnt-appliance list',
        cause: error,
      });
    } finally {
      await rm(leaving, { recursive: true, force: true });
    }
  } finally {
    await lock.release();
  }
}

/** Lists imported appliances by name, corrupt ones included. */
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

async function makeImportedDir(importedDir: string): Promise<void> {
  const made = await mkdir(importedDir, { recursive: true });
  // QEMU runs as another user.
  if (made !== undefined) await chmod(importedDir, 0o755);
  await writeFile(join(importedDir, LOCK), '', { flag: 'a', mode: 0o600 });
}

/** Fills `fresh` with a complete appliance: synced, fit for this host and readable by all. */
async function bring(
  source: string,
  fresh: string,
  signal: AbortSignal,
): Promise<ApplianceManifest> {
  await takeIn(source, fresh, signal);
  const manifest = await verifyAppliance(fresh, { shown: source, hint: IMPORT_HINT, signal });
  const unfit = describeUnfit(manifest, { architecture: machine(), memoryBytes: totalmem() });
  if (unfit !== null)
    throw new AppError('VALIDATION', `the appliance ${source} cannot run here: ${unfit}`, {
      hint: 'The limits in its manifest.json exclude this host. Use an appliance made for it.',
    });
  const { kernel, initrd, root } = manifest;
  const named = [MANIFEST_NAME, kernel.name, initrd.name, root.name];
  for (const name of await readdir(fresh)) {
    const path = join(fresh, name);
    if (!named.includes(name)) {
      await rm(path);
      continue;
    }
    await chmod(path, 0o644);
    await syncPath(path);
  }
  await chmod(fresh, 0o755);
  await syncPath(fresh);
  return manifest;
}

/** Replaces the directory atomically, where the file system supports an exchange. */
async function putInPlace(fresh: string, importedDir: string, name: string): Promise<void> {
  const target = join(importedDir, name);
  try {
    exchangePaths(fresh, target);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'ENOENT' && code !== 'EINVAL') throw error;
    const former = join(importedDir, `${FORMER}${name}`);
    if (code === 'EINVAL') await rename(target, former);
    await rename(fresh, target);
    await rm(former, { recursive: true, force: true });
  }
  await syncPath(importedDir);
}

/**
 * Cleans up after killed imports. Restores a replaced appliance whose successor did not get its
 * name. The caller must hold the lock.
 */
async function settleLeftovers(importedDir: string): Promise<void> {
  for (const found of await readdir(importedDir)) {
    const path = join(importedDir, found);
    if (found.startsWith(FORMER)) {
      const target = join(importedDir, found.slice(FORMER.length));
      if (!(await exists(target))) await rename(path, target);
    }
    if (found.startsWith(FRESH) || found.startsWith(FORMER))
      await rm(path, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
