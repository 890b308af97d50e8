import { randomUUID } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import {
  chmod,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  type FileHandle,
} from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { fileName, sha256Hex } from '#shared/contract/primitives.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { removeHalves, syncPath, writeDurably } from '#shared/files/durable.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { shareBlocks } from '../host/share-blocks.ts';
import { readImageBytes } from '../content/images/image-bytes.ts';
import type { FetchedImage } from '../content/images/image-cache.ts';
import { findInArchive, MAX_INDEX_BYTES, parseArchiveIndex } from './archive-index.ts';
import type { ArchiveContent } from './boot-plan.ts';
import type { BootTree } from '../content/downloads/boot-tree.ts';
import { TRAILER, TRAILER_BYTES } from './explode-script.ts';

/** Digests of the archives' content, by the file name that BootEnvs give. */
const namesFile = z.record(fileName, sha256Hex);
/**
 * Indexes held in memory, mostly some hundred KiB each. Instances that install many distributions
 * at a time need no second read of an index.
 */
const MAX_HELD_BYTES = 4 * MAX_INDEX_BYTES;
const UNFINISHED = /^new-/;
const NAMES = 'names.json';

export type ReadArchive = Pick<FetchedImage, 'path' | 'sizeBytes' | 'verifyUnchanged'>;

/** A file that an appliance fills. Nothing refers to it before `keep`. */
export interface UnfinishedArchive extends AsyncDisposable {
  readonly path: string;
  /**
   * Checks the appliance's output and makes it the archive of a name. For an index of the archive's
   * own bytes, copies the archive.
   * @param sizeBytes as the appliance reported
   * @returns number of files
   * @throws AppError IMAGE_INVALID, IMAGE_UNREADABLE, DISK_FULL, an error of `verifyUnchanged`, or
   * the signal's reason
   */
  keep(
    isoFile: string,
    sizeBytes: number,
    archive: ReadArchive,
    signal: AbortSignal,
  ): Promise<number>;
}

export interface OpenedArchive {
  readonly isoFile: string;
  readonly sha256: string;
  readonly sizeBytes: number;
}

/**
 * Opens the folder and removes unfinished files of an earlier daemon.
 * @param inUse the contents that instances boot from, with or without a name
 */
export async function openBootArchives(
  dir: string,
  inUse: () => ReadonlySet<string>,
): Promise<BootArchives> {
  for (const file of await list(dir))
    if (UNFINISHED.test(file)) await rm(join(dir, file), { force: true });
  const namesPath = join(dir, NAMES);
  await removeHalves([namesPath]);
  const archives = new BootArchives(dir, await readNames(namesPath), inUse);
  await archives.dropUnnamed();
  return archives;
}

/**
 * Archives opened on this node: their files in one run of bytes, with an index. They are stored by
 * content, under the names that BootEnvs give them.
 */
export class BootArchives {
  readonly #dir: string;
  #names: Readonly<Record<string, string>>;
  readonly #held = new Map<string, Buffer>();
  readonly #inUse: () => ReadonlySet<string>;
  /** Serializes changes of names and removals, which depend on the names. */
  readonly #turns = new SerialQueue<'names'>();

  constructor(
    dir: string,
    names: Readonly<Record<string, string>>,
    inUse: () => ReadonlySet<string>,
  ) {
    this.#dir = dir;
    this.#names = names;
    this.#inUse = inUse;
  }

  /** @param expected digest, or empty for any: a name may have other bytes meanwhile */
  find(isoFile: string, expected: string): ArchiveContent | null {
    const sha256 = this.contentOf(isoFile);
    if (sha256 === undefined || (expected !== '' && expected !== sha256)) return null;
    return { sha256, has: (path) => findInArchive(this.#index(sha256), path) !== undefined };
  }

  tree(sha256: string): BootTree {
    return {
      open: async ({ path }) => {
        const extent = findInArchive(this.#index(sha256), decodePath(path) ?? '');
        if (extent === undefined)
          return { kind: 'refusal', status: 404, reason: 'the archive has no such file' };
        const handle = await open(this.#path(sha256, 'data'), 'r');
        return { kind: 'slice', handle, ...extent, etag: `"${sha256}-${extent.offset}"` };
      },
    };
  }

  async list(): Promise<readonly OpenedArchive[]> {
    const all = Object.entries(this.#names).map(async ([isoFile, sha256]) => {
      const sizeBytes = await this.#sizeOf(sha256);
      return sizeBytes === null ? [] : [{ isoFile, sha256, sizeBytes }];
    });
    return (await Promise.all(all)).flat();
  }

  async #sizeOf(sha256: string): Promise<number | null> {
    try {
      const parts = (['data', 'index'] as const).map((part) => stat(this.#path(sha256, part)));
      return (await Promise.all(parts)).reduce((sum, { size }) => sum + size, 0);
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  /** Gives a name to a content that is opened already. @returns whether it exists */
  name(isoFile: string, sha256: string): Promise<boolean> {
    return this.#turns.run('names', async () => {
      if ((await this.#sizeOf(sha256)) === null) return false;
      await this.#writeNames({ ...this.#names, [isoFile]: sha256 });
      return true;
    });
  }

  /**
   * Removes a name, and the bytes unless another name or an instance still needs them.
   * @returns whether the bytes are removed
   */
  remove(isoFile: string): Promise<boolean> {
    return this.#turns.run('names', async () => {
      const { [isoFile]: sha256, ...names } = this.#names;
      if (sha256 === undefined) return false;
      await this.#writeNames(names);
      return !(await list(this.#dir)).includes(`${sha256}.data`);
    });
  }

  async #writeNames(names: Readonly<Record<string, string>>): Promise<void> {
    await writeDurably(join(this.#dir, NAMES), JSON.stringify(names), { mode: 0o600 });
    this.#names = names;
    await this.#drop();
  }

  async create(sha256: string, maxBytes: number): Promise<UnfinishedArchive> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const path = join(this.#dir, `new-${randomUUID()}`);
    {
      await using handle = await open(path, 'wx', 0o600);
      await handle.truncate(maxBytes);
    }
    const indexPath = `${path}.index`;
    return {
      path,
      keep: async (isoFile, sizeBytes, archive, signal) => {
        if (sizeBytes > maxBytes || sizeBytes < TRAILER_BYTES)
          throw notWhole('the appliance reported an impossible file size');
        const { text, isInPlace, filesBytes } = await readIndex(path, sizeBytes);
        const dataBytes = isInPlace ? archive.sizeBytes : filesBytes;
        const { files } = await parseArchiveIndex(text, dataBytes);
        if (isInPlace) await takeBytes(archive, path, signal);
        await archive.verifyUnchanged();
        await truncate(path, dataBytes);
        await writeDurably(indexPath, text, { mode: 0o600 });
        await syncPath(path);
        await this.#turns.run('names', async () => {
          // The index is renamed last: an index implies that its files are in place.
          await rename(path, this.#path(sha256, 'data'));
          await rename(indexPath, this.#path(sha256, 'index'));
          await syncPath(this.#dir);
          await this.#writeNames({ ...this.#names, [isoFile]: sha256 });
        });
        return files.size;
      },
      [Symbol.asyncDispose]: async () => {
        for (const each of [path, indexPath]) await rm(each, { force: true });
      },
    };
  }

  contentOf(isoFile: string): string | undefined {
    return ownValue(this.#names, isoFile);
  }

  /** Removes contents that have no name and from which no instance boots. */
  dropUnnamed(): Promise<void> {
    return this.#turns.run('names', () => this.#drop());
  }

  async #drop(): Promise<void> {
    for (const file of await list(this.#dir)) {
      const sha256 = /^([0-9a-f]{64})\.(data|index)$/.exec(file)?.[1];
      // Read again for each file: instances start and end meanwhile.
      if (sha256 === undefined || this.#isNeeded(sha256)) continue;
      this.#held.delete(sha256);
      await rm(join(this.#dir, file), { force: true });
    }
  }

  #isNeeded(sha256: string): boolean {
    return Object.values(this.#names).includes(sha256) || this.#inUse().has(sha256);
  }

  /** Reads synchronously: the file is the daemon's own, and a plan is made synchronously. */
  #index(sha256: string): Buffer {
    const held = this.#held.get(sha256);
    const index = held ?? readFileSync(this.#path(sha256, 'index'));
    // Keeps the map in order of last use.
    this.#held.delete(sha256);
    this.#held.set(sha256, index);
    if (held === undefined) this.#dropOldest();
    return index;
  }

  #dropOldest(): void {
    let bytes = this.#held.values().reduce((sum, { length }) => sum + length, 0);
    for (const [sha256, { length }] of this.#held) {
      if (bytes <= MAX_HELD_BYTES) return;
      this.#held.delete(sha256);
      bytes -= length;
    }
  }

  #path(sha256: string, part: 'data' | 'index'): string {
    return join(this.#dir, `${sha256}.${part}`);
  }
}

async function list(dir: string): Promise<readonly string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Shares the archive's blocks where the file system can, and copies its bytes elsewhere. */
async function takeBytes(archive: ReadArchive, path: string, signal: AbortSignal): Promise<void> {
  try {
    signal.throwIfAborted();
    await rm(path);
    if (await shareBlocks(archive.path, path)) await chmod(path, 0o600);
    else await copyBytes(archive, path, signal);
  } catch (error) {
    throw nameDiskFull(error);
  }
}

function copyBytes(archive: ReadArchive, path: string, signal: AbortSignal): Promise<void> {
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  return pipeline(readImageBytes(archive, signal), target);
}

interface WrittenIndex {
  readonly text: string;
  /** True for an index of the archive's own bytes, false for one of the files before it. */
  readonly isInPlace: boolean;
  readonly filesBytes: number;
}

/** Reads the index behind the files. The trailer holds its offset. */
async function readIndex(path: string, sizeBytes: number): Promise<WrittenIndex> {
  await using handle = await open(path, 'r');
  const trailer = await readAt(handle, sizeBytes - TRAILER_BYTES, TRAILER_BYTES);
  const [, kind, begin] = TRAILER.exec(trailer.toString('latin1')) ?? [];
  const filesBytes = Number(begin);
  const indexBytes = sizeBytes - TRAILER_BYTES - filesBytes;
  if (!(indexBytes >= 0 && indexBytes <= MAX_INDEX_BYTES))
    throw notWhole('the output of the appliance has no index');
  const text = (await readAt(handle, filesBytes, indexBytes)).toString('utf8');
  return { text, isInPlace: kind === 'in-place', filesBytes };
}

async function readAt(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, offset + done);
    if (bytesRead === 0) throw notWhole('the output of the appliance is truncated');
    done += bytesRead;
  }
  return bytes;
}

function notWhole(reason: string): AppError {
  return new AppError('IMAGE_INVALID', reason);
}

async function readNames(path: string): Promise<Record<string, string>> {
  try {
    return namesFile.parse(parseJson(await readFile(path, 'utf8')));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return {};
    throw error;
  }
}

/** Returns null for invalid percent-encoding. */
function decodePath(encoded: string): string | null {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}
