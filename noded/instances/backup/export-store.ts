import type { BigIntStats } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { ExportInfo } from '#shared/contract/api.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { makeDirectoryDurably, syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { refuseWritten } from '../../storage/hold-images.ts';
import { isSameFile, pinDirectory, pinFile, type PinnedFile } from '../../host/pinned-file.ts';
import { type ExportRecord, formatExportRecord, parseExportRecord } from './export-record.ts';

const RECORD_FILE = 'config.ini';
/**
 * Directories that are not complete, or are being removed, end with it. No instance's name can, as
 * it can with Ganeti's `.new`: what ends with that is taken for an export like others, and never
 * swept. A file's name has 255 bytes, an instance's 253.
 */
const UNFINISHED = '~n';
/**
 * What the export that has just been made takes the place of; it comes back when that was not
 * finished.
 */
const REPLACED = '~o';
/** All documents of an instance are in it, as large as a request may be that gives them. */
const MAX_RECORD_BYTES = 16 * MIB;

/** The dump of a disk: a file of the host. */
export interface DumpFile {
  readonly disk: number;
  readonly path: string;
  /** The bytes of the dump; of one that is to be made, how many it may have at most. */
  readonly sizeBytes: number;
}

export interface LoadedExport {
  readonly path: string;
  /** It is in the folder that only root may open: this program wrote it, or root. */
  readonly isOwn: boolean;
  readonly record: ExportRecord;
  readonly dumps: readonly DumpFile[];
  /**
   * Opens the dumps that were checked, to be read through the paths that this gives until it is
   * disposed of.
   * @throws AppError EXPORT_INVALID when one was changed or replaced meanwhile
   */
  pin(): Promise<PinnedDumps>;
}

export interface PinnedDumps extends AsyncDisposable {
  readonly dumps: readonly DumpFile[];
}

/** An export that is being made: nobody sees it before `finish`. */
export interface UnfinishedExport extends AsyncDisposable {
  /** Makes the file for a disk's dump, which may grow to `sizeBytes` if given. @returns its path */
  createDump(disk: number, sizeBytes?: number): Promise<string>;
  /** The path for the file of a disk that is dumped whole. */
  wholePath(disk: number): string;
  /** Cuts a dump to what was written. */
  cutDump(disk: number, sizeBytes: number): Promise<void>;
  /** Puts it in the place of an earlier export of that instance. @returns its directory */
  finish(record: ExportRecord): Promise<string>;
}

/**
 * Exports below `srv/ganeti/export`, a directory for each instance, as in Ganeti. Only root may
 * open them.
 */
export interface ExportStore {
  list(): Promise<readonly ExportInfo[]>;
  /**
   * @param source name or absolute directory
   * @throws AppError EXPORT_NOT_FOUND, EXPORT_INVALID, DISK_IN_USE while a dump is being written
   */
  load(source: string): Promise<LoadedExport>;
  begin(name: string): Promise<UnfinishedExport>;
  /** Whether there is one, importable or not. @throws AppError EXPORT_NOT_FOUND */
  check(name: string): Promise<void>;
  /** @throws AppError EXPORT_NOT_FOUND */
  remove(name: string): Promise<void>;
  /** What a daemon that was killed did not finish goes; what it was replacing comes back. */
  sweep(): Promise<void>;
}

export const dumpFileOf = (disk: number): string => `disk${disk}.snap`;

export const wholeFileOf = (disk: number): string => `disk${disk}.raw.zst`;

export function createExportStore(directory: string): ExportStore {
  const pathOf = (name: string): string => join(directory, name);
  /**
   * Where an export is: one that could not be replaced, and for which there was no way back, stays
   * aside.
   */
  const placeOf = async (name: string): Promise<string> => {
    const isAside = findAside(await namesIn(directory)).includes(name);
    return pathOf(isAside ? name + REPLACED : name);
  };
  const load = async (source: string): Promise<LoadedExport> => {
    if (!isAbsolute(source) && !instanceName.safeParse(source).success)
      throw notFound(source, directory);
    const path = isAbsolute(source) ? source : await placeOf(source);
    await using folder = await openFolder(path, source, directory);
    const record = parseExportRecord(await readRecordFile(folder, path));
    const dumps: CheckedDump[] = [];
    for (const [disk, { dump }] of record.disks.entries()) {
      if (dump === null) continue;
      await using file = await openDump(folder, path, dump);
      const sizeBytes = Number(file.found.size);
      dumps.push({ disk, path: join(path, dump), sizeBytes, name: dump, found: file.found });
    }
    return {
      path,
      isOwn: dirname(path) === directory,
      record,
      dumps: dumps.map(({ disk, path: file, sizeBytes }) => ({ disk, path: file, sizeBytes })),
      pin: () => pinDumps(path, dumps, () => openFolder(path, source, directory)),
    };
  };
  const check = async (name: string): Promise<void> => {
    const names = await namesIn(directory);
    const isThere = names.includes(name) || findAside(names).includes(name);
    if (!isThere || !instanceName.safeParse(name).success) throw notFound(name, directory);
  };
  return {
    load,
    check,
    list: async () => {
      const all = await namesIn(directory);
      const names = [...all.filter((name) => !isUnderWork(name)), ...findAside(all)].sort();
      return Promise.all(names.map(async (name) => describe(name, await placeOf(name), load)));
    },
    begin: async (name) => {
      const path = pathOf(name + UNFINISHED);
      await rm(path, { recursive: true, force: true });
      await makeDirectoryDurably(directory, 0o700);
      const place = await placeOf(name);
      if (place !== pathOf(name)) await rename(place, pathOf(name));
      await mkdir(path, { mode: 0o700 });
      return unfinished(path, pathOf(name));
    },
    remove: async (name) => {
      await check(name);
      // Under its own name it is whole or gone, even if this is killed half way.
      await rm(pathOf(name + REPLACED), { recursive: true, force: true });
      await rm(pathOf(name + UNFINISHED), { recursive: true, force: true });
      await rename(pathOf(name), pathOf(name + UNFINISHED)).catch((error: unknown) => {
        // A directory may have to grow for a name. It is removed under its own then: removing makes
        // the room.
        if (systemCodeOf(error) !== 'ENOSPC') throw error;
      });
      for (const path of [pathOf(name), pathOf(name + UNFINISHED)])
        await rm(path, { recursive: true, force: true });
      await syncPath(directory);
    },
    sweep: async () => {
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
    // After `finish` there is nothing of that name any more.
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/**
 * Replaces an export. At each moment either the earlier or the new one is there whole, under its
 * own name or as what `sweep` gives it back from.
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
    // On a full disk there may be no way back either: then the earlier one is found where it is.
    await rename(old, finalPath).catch(() => undefined);
    throw error;
  }
  await syncPath(dirname(finalPath));
  await rm(old, { recursive: true, force: true });
}

async function describe(
  name: string,
  path: string,
  load: (source: string) => Promise<LoadedExport>,
): Promise<ExportInfo> {
  try {
    const { record, dumps } = await load(path);
    const sizeBytes = dumps.reduce((sum, dump) => sum + dump.sizeBytes, 0);
    const { createdAtMs, osType } = record;
    return { name, path, createdAtMs, osType, sizeBytes, problem: null };
  } catch (error) {
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
    return {
      name,
      path,
      createdAtMs: mtimeMs,
      osType: null,
      sizeBytes: 0,
      problem: messageOf(error),
    };
  }
}

const isUnderWork = (name: string): boolean => name.endsWith(UNFINISHED) || name.endsWith(REPLACED);

/** Those that something was to take the place of, and that nothing has. Pure. */
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

/** @param folder that is open; whoever may write its parent can let `path` lead elsewhere */
async function readRecordFile(folder: PinnedFile, path: string): Promise<string> {
  const shown = join(path, RECORD_FILE);
  let file: PinnedFile;
  try {
    file = await pinFile(join(folder.path, RECORD_FILE), 'refused');
  } catch (error) {
    const reason = systemCodeOf(error) === 'ENOENT' ? 'is missing' : messageOf(error);
    throw new AppError('EXPORT_INVALID', `${shown} ${reason}`, { cause: error });
  }
  await using opened = file;
  if (opened.found.size > BigInt(MAX_RECORD_BYTES))
    throw new AppError('EXPORT_INVALID', `${shown} has more than ${MAX_RECORD_BYTES} bytes`);
  // It is read as long as it was when it was checked, however much is written to it by now.
  const text = Buffer.alloc(Number(opened.found.size));
  const { bytesRead } = await opened.handle.read(text, 0, text.length, 0);
  return text.toString('utf8', 0, bytesRead);
}

/** A file proper of the folder: what came from elsewhere must not make root read another one. */
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
