import type { BigIntStats } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { ExportInfo } from '#shared/contract/api.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { makeDirectoryDurably, syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { refuseWritten } from '../../storage/hold-images.ts';
import { isSameFile, pinDirectory, pinFile, type PinnedFile } from '../../host/pinned-file.ts';
import { dropReservedTags, listLosses } from './list-losses.ts';
import { type ExportRecord, formatExportRecord, parseExportRecord } from './export-record.ts';

const RECORD_FILE = 'config.ini';
/**
 * Suffix of incomplete directories and of those being removed. No instance name can end with it.
 * Ganeti's `.new` is a valid end of a name, so exports with it are listed and never swept. A file
 * name has at most 255 bytes, an instance name at most 253.
 */
const UNFINISHED = '~n';
/**
 * Suffix of an earlier export while a new one replaces it. `sweep` restores it after an
 * interruption.
 */
const REPLACED = '~o';
/**
 * The file holds all documents of an instance, which may be as large as the request that sets them.
 */
const MAX_RECORD_BYTES = 16 * MIB;

/** The dump of a disk: a file of the host. */
export interface DumpFile {
  readonly disk: number;
  readonly path: string;
  /** Bytes of the dump; for a dump still to be made, its maximum. */
  readonly sizeBytes: number;
}

export interface LoadedExport {
  readonly path: string;
  /** The export is in the folder that only root can open, so this program or root wrote it. */
  readonly isOwn: boolean;
  readonly record: ExportRecord;
  /** Settings in an export of Ganeti that an import does not keep. */
  readonly losses: readonly string[];
  readonly dumps: readonly DumpFile[];
  /**
   * Opens the dumps that were checked. The returned paths are valid until the result is disposed
   * of.
   * @throws AppError EXPORT_INVALID if a dump was changed or replaced since the check
   */
  pin(): Promise<PinnedDumps>;
}

export interface PinnedDumps extends AsyncDisposable {
  readonly dumps: readonly DumpFile[];
}

/** An export that is being written. It becomes visible with `finish`. */
export interface UnfinishedExport extends AsyncDisposable {
  /**
   * Creates the file for a disk's dump, which may grow to `sizeBytes` if given.
   * @returns its path
   */
  createDump(disk: number, sizeBytes?: number): Promise<string>;
  /** Returns the path for the file of a disk that is dumped whole. */
  wholePath(disk: number): string;
  /** Truncates a dump to the bytes that were written. */
  cutDump(disk: number, sizeBytes: number): Promise<void>;
  /**
   * Replaces an earlier export of the instance.
   * @returns the export's directory
   */
  finish(record: ExportRecord): Promise<string>;
}

export const dumpFileOf = (disk: number): string => `disk${disk}.snap`;

export const wholeFileOf = (disk: number): string => `disk${disk}.raw.zst`;

/**
 * Keeps exports below `srv/ganeti/export`, one directory per instance as in Ganeti. Only root can
 * open them.
 */
export function createExportStore(directory: string) {
  const pathOf = (name: string): string => join(directory, name);
  /**
   * Returns an export's path. After a failed replacement and a failed restoration, it is still
   * aside.
   */
  const placeOf = async (name: string): Promise<string> => {
    const isAside = findAside(await namesIn(directory)).includes(name);
    return pathOf(isAside ? name + REPLACED : name);
  };
  /**
   * @param source name or absolute directory
   * @throws AppError EXPORT_NOT_FOUND, EXPORT_INVALID, DISK_IN_USE while a dump is being written
   */
  const load = async (source: string): Promise<LoadedExport> => {
    if (!isAbsolute(source) && !instanceName.safeParse(source).success)
      throw notFound(source, directory);
    const path = isAbsolute(source) ? source : await placeOf(source);
    await using folder = await openFolder(path, source, directory);
    const text = await readRecordFile(folder, path);
    const isOwn = dirname(path) === directory;
    const read = parseExportRecord(text);
    const { record, losses } = isOwn ? { record: read, losses: [] } : dropReservedTags(read);
    const dumps: CheckedDump[] = [];
    for (const [disk, { dump }] of record.disks.entries()) {
      if (dump === null) continue;
      await using file = await openDump(folder, path, dump);
      const sizeBytes = Number(file.found.size);
      dumps.push({ disk, path: join(path, dump), sizeBytes, name: dump, found: file.found });
    }
    return {
      path,
      isOwn,
      record,
      losses: [...listLosses(text), ...losses],
      dumps: dumps.map(({ disk, path: file, sizeBytes }) => ({ disk, path: file, sizeBytes })),
      pin: () => pinDumps(path, dumps, () => openFolder(path, source, directory)),
    };
  };
  /** Checks that an export exists, importable or not. @throws AppError EXPORT_NOT_FOUND */
  const check = async (name: string): Promise<void> => {
    const names = await namesIn(directory);
    const isThere = names.includes(name) || findAside(names).includes(name);
    if (!isThere || !instanceName.safeParse(name).success) throw notFound(name, directory);
  };
  return {
    load,
    check,
    /**
     * Lists the exports of this store, or of another directory.
     * @throws AppError EXPORT_NOT_FOUND without that directory
     */
    list: async (other?: string): Promise<readonly ExportInfo[]> => {
      if (other !== undefined) return listOther(other, load);
      const all = await namesIn(directory);
      const names = [...all.filter((name) => !isUnderWork(name)), ...findAside(all)].sort();
      return Promise.all(names.map(async (name) => describe(name, await placeOf(name), load)));
    },
    begin: async (name: string): Promise<UnfinishedExport> => {
      const path = pathOf(name + UNFINISHED);
      await rm(path, { recursive: true, force: true });
      await makeDirectoryDurably(directory, 0o700);
      const place = await placeOf(name);
      if (place !== pathOf(name)) await rename(place, pathOf(name));
      await mkdir(path, { mode: 0o700 });
      return unfinished(path, pathOf(name));
    },
    /** @throws AppError EXPORT_NOT_FOUND */
    remove: async (name: string): Promise<void> => {
      await check(name);
      // After the rename, the name has a complete export or none, even if the daemon is killed.
      await rm(pathOf(name + REPLACED), { recursive: true, force: true });
      await rm(pathOf(name + UNFINISHED), { recursive: true, force: true });
      await rename(pathOf(name), pathOf(name + UNFINISHED)).catch((error: unknown) => {
        // On a full disk the directory may not be able to grow for a new name. Removal under the
        // old name frees space.
        if (systemCodeOf(error) !== 'ENOSPC') throw error;
      });
      for (const path of [pathOf(name), pathOf(name + UNFINISHED)])
        await rm(path, { recursive: true, force: true });
      await syncPath(directory);
    },
    /**
     * Removes exports that an interrupted daemon left unfinished, and restores those it was
     * replacing.
     */
    sweep: async (): Promise<void> => {
      const names = await namesIn(directory);
      for (const name of names) {
        if (name.endsWith(UNFINISHED)) await rm(pathOf(name), { recursive: true, force: true });
        if (name.endsWith(REPLACED) && names.includes(name.slice(0, -REPLACED.length)))
          await rm(pathOf(name), { recursive: true, force: true });
      }
      for (const name of findAside(names)) await rename(pathOf(name + REPLACED), pathOf(name));
    },
  };
}

export type ExportStore = ReturnType<typeof createExportStore>;

function unfinished(path: string, finalPath: string): UnfinishedExport {
  return {
    createDump: async (disk, sizeBytes = 0) => {
      const file = join(path, dumpFileOf(disk));
      await using handle = await open(file, 'w', 0o600);
      await handle.truncate(sizeBytes);
      return file;
    },
    wholePath: (disk) => join(path, wholeFileOf(disk)),
    cutDump: (disk, sizeBytes) => truncate(join(path, dumpFileOf(disk)), sizeBytes),
    finish: async (record) => {
      await writeFile(join(path, RECORD_FILE), formatExportRecord(record), { mode: 0o600 });
      await syncFlatDirectory(path);
      await takePlace(path, finalPath);
      return finalPath;
    },
    // After `finish` no directory has this path.
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/**
 * Replaces an export. At each moment either the earlier or the new export is complete, under its
 * own name or where `sweep` finds it.
 */
async function takePlace(path: string, finalPath: string): Promise<void> {
  const old = finalPath + REPLACED;
  await rm(old, { recursive: true, force: true });
  await rename(finalPath, old).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  });
  try {
    await rename(path, finalPath);
  } catch (error) {
    // On a full disk the restoration may fail too. The earlier export then stays aside, where
    // `placeOf` finds it.
    await rename(old, finalPath).catch(() => undefined);
    throw error;
  }
  await syncPath(dirname(finalPath));
  await rm(old, { recursive: true, force: true });
}

async function listOther(
  directory: string,
  load: (source: string) => Promise<LoadedExport>,
): Promise<readonly ExportInfo[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw new AppError('EXPORT_NOT_FOUND', `cannot list ${directory}: ${systemCodeOf(error)}`, {
      hint: 'Give a directory of this node whose folders are exports',
      cause: error,
    });
  });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return Promise.all(
    names.sort().map((name) => describe(name, join(resolve(directory), name), load)),
  );
}

async function describe(
  name: string,
  path: string,
  load: (source: string) => Promise<LoadedExport>,
): Promise<ExportInfo> {
  try {
    const { record, dumps, losses } = await load(path);
    const sizeBytes = dumps.reduce((sum, dump) => sum + dump.sizeBytes, 0);
    const { name: instance, createdAtMs, osType } = record;
    return {
      ...{ name, path, createdAtMs, osType, sizeBytes },
      ...{ problem: null, instance, losses: [...losses] },
    };
  } catch (error) {
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
    return {
      name,
      path,
      createdAtMs: mtimeMs,
      osType: null,
      sizeBytes: 0,
      problem: messageOf(error),
      instance: null,
      losses: [],
    };
  }
}

const isUnderWork = (name: string): boolean => name.endsWith(UNFINISHED) || name.endsWith(REPLACED);

/** Returns the names of exports that were set aside and have no replacement. Pure. */
const findAside = (names: readonly string[]): readonly string[] =>
  names
    .filter((name) => name.endsWith(REPLACED))
    .map((name) => name.slice(0, -REPLACED.length))
    .filter((name) => !names.includes(name));

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

interface CheckedDump extends DumpFile {
  readonly name: string;
  readonly found: BigIntStats;
}

async function pinDumps(
  path: string,
  dumps: readonly CheckedDump[],
  open: () => Promise<PinnedFile>,
): Promise<PinnedDumps> {
  await using opened = new AsyncDisposableStack();
  await using folder = await open();
  const pinned: DumpFile[] = [];
  for (const { disk, sizeBytes, name, found } of dumps) {
    const file = opened.use(await openDump(folder, path, name));
    if (!isSameFile(file.found, found))
      throw unreadableDump(
        join(path, name),
        new Error('it was changed or replaced while it was read'),
      );
    pinned.push({ disk, sizeBytes, path: file.path });
  }
  const all = opened.move();
  return { dumps: pinned, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function openFolder(path: string, source: string, directory: string): Promise<PinnedFile> {
  try {
    return await pinDirectory(path);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
    throw notFound(source, directory, error);
  }
}

/** @param folder already open: a user who can write to its parent could redirect `path` */
async function readRecordFile(folder: PinnedFile, path: string): Promise<string> {
  const shown = join(path, RECORD_FILE);
  let file: PinnedFile;
  try {
    file = await pinFile(join(folder.path, RECORD_FILE), 'refused');
  } catch (error) {
    const reason =
      systemCodeOf(error) === 'ENOENT' ? 'is missing' : `cannot be read: ${messageOf(error)}`;
    throw new AppError('EXPORT_INVALID', `${shown} ${reason}`, { cause: error });
  }
  await using opened = file;
  if (opened.found.size > BigInt(MAX_RECORD_BYTES))
    throw new AppError('EXPORT_INVALID', `${shown} has more than ${MAX_RECORD_BYTES} bytes`);
  // Reads at most the size that was checked, even if the file grows meanwhile.
  const text = Buffer.alloc(Number(opened.found.size));
  const { bytesRead } = await opened.handle.read(text, 0, text.length, 0);
  return text.toString('utf8', 0, bytesRead);
}

/**
 * Opens a regular file of the folder. A link from another system must not make root read other
 * files.
 */
async function openDump(folder: PinnedFile, path: string, name: string): Promise<PinnedFile> {
  const shown = join(path, name);
  let file: PinnedFile;
  try {
    file = await pinFile(join(folder.path, name), 'refused');
  } catch (error) {
    const isLink = systemCodeOf(error) === 'ELOOP';
    const reason = isLink ? new Error('it is a link, not a regular file', { cause: error }) : error;
    throw unreadableDump(shown, reason);
  }
  try {
    if (file.found.nlink > 1n && file.found.uid !== folder.found.uid)
      throw unreadableDump(shown, new Error('it is a hard link to a file of another user'));
    await refuseWritten(shown, file.handle);
    return file;
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}

function unreadableDump(file: string, reason: unknown): AppError {
  return new AppError(
    'EXPORT_INVALID',
    `the export's ${file} cannot be read: ${messageOf(reason)}`,
    { cause: reason },
  );
}

function notFound(source: string, directory: string, cause?: unknown): AppError {
  return new AppError('EXPORT_NOT_FOUND', `this node has no export '${source}'`, {
    details: { source },
    hint: `List the exports in ${directory} with gnt-backup list. For another directory give the whole path.`,
    cause,
  });
}
