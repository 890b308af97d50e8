import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { findData } from '#shared/sys/files.ts';
import { MIB } from '#shared/units/bytes.ts';
import { shareBlocks } from '../host/share-blocks.ts';
import { copyVariables, type Installation } from './firmware-variables.ts';
import { diskPath, takenBytes } from './install-disks.ts';

/** The length of one read: fast on any disk, and soon over when the copy is to end. */
const CHUNK_BYTES = MIB;

/**
 * Where a copy grows. It is told from the folder of an instance by its name: a daemon that finds
 * one asks the store whose it is, and without an owner it is what a kill has left.
 */
const COPY = /^copying-([0-9a-f-]{36})$/;

export function copyDir(disksDir: string, uuid: string): string {
  return join(disksDir, `copying-${uuid}`);
}

export interface CopyRequest {
  /** What is copied, and whose images the caller holds. */
  readonly from: Installation;
  readonly count: number;
  /** The new instance. */
  readonly to: Pick<InstanceRecord, 'uuid' | 'instanceId'>;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
  /** Asked where blocks are not shared. @throws AppError DISK_SPACE */
  readonly requireRoom: (bytes: number) => Promise<void>;
}

/**
 * Disks with the content of others, and what their firmware boots them by: they share their blocks
 * where the file system can (btrfs, xfs), and holes stay holes where it cannot.
 * @throws AppError DISK_SPACE
 */
export async function copyDisks(dir: string, request: CopyRequest): Promise<void> {
  const { from, count, to } = request;
  if (!(await cloneAll(from.dir, dir, count))) await copyAll(dir, request);
  await copyVariables(from, { dir, instanceId: to.instanceId });
}

/**
 * Fills the folder of an instance that is not there yet. Whole and synced when it resolves, gone
 * when it rejects.
 * @throws AppError DISK_FULL, and what `fill` does
 */
export async function fillCopy(
  disksDir: string,
  uuid: string,
  fill: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = copyDir(disksDir, uuid);
  try {
    await mkdir(dir, { mode: 0o700 });
    await fill(dir);
    await syncFlatDirectory(dir);
    await syncPath(disksDir);
  } catch (error) {
    await dropCopy(disksDir, uuid);
    if (systemCodeOf(error) !== 'ENOSPC') throw error;
    throw new AppError('DISK_FULL', `${disksDir} is full: no disks were created`, {
      hint: 'Remove instances or images that are not needed, or enlarge the file system.',
      cause: error,
    });
  }
}

/** The record is there: so are its disks from now on. */
export async function takeCopy(disksDir: string, uuid: string): Promise<void> {
  await rename(copyDir(disksDir, uuid), join(disksDir, uuid));
  await syncPath(disksDir);
}

/**
 * Takes what a record's copy left, if it did not come so far. An instance that has disks keeps
 * them.
 * @returns names of the folders that were dealt with
 */
export async function takeLeftCopy(disksDir: string, uuid: string): Promise<readonly string[]> {
  try {
    await takeCopy(disksDir, uuid);
    return [basename(copyDir(disksDir, uuid))];
  } catch (error) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(systemCodeOf(error) ?? '')) return [];
    throw error;
  }
}

export async function dropCopy(disksDir: string, uuid: string): Promise<void> {
  await rm(copyDir(disksDir, uuid), { recursive: true, force: true });
}

/** UUIDs of the instances that copies were made for, and that did not get them. */
export async function listCopies(disksDir: string): Promise<readonly string[]> {
  return (await readdir(disksDir)).flatMap((name) => COPY.exec(name)?.[1] ?? []);
}

/** Whether two files there can share their blocks: tried, with files that are gone afterwards. */
export async function sharesBlocks(disksDir: string): Promise<boolean> {
  const dir = copyDir(disksDir, randomUUID());
  try {
    await mkdir(dir, { mode: 0o700 });
    await writeFile(diskPath(dir, 0), 'x');
    await mkdir(join(dir, 'to'));
    return await cloneAll(dir, join(dir, 'to'), 1);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** @returns false where blocks cannot be shared; nothing is there then */
async function cloneAll(from: string, to: string, count: number): Promise<boolean> {
  for (let index = 0; index < count; index += 1) {
    if (await shareBlocks(diskPath(from, index), diskPath(to, index))) continue;
    if (index > 0) throw new Error(`disk ${index} cannot share its blocks, although disk 0 can`);
    return false;
  }
  return true;
}

async function copyAll(to: string, request: CopyRequest): Promise<void> {
  const { from, count, requireRoom } = request;
  const pairs = Array.from(
    { length: count },
    (_, index) => [diskPath(from.dir, index), diskPath(to, index)] as const,
  );
  await requireRoom(await takenTogether(pairs.map(([path]) => path)));
  await copyFiles(pairs, request);
}

/** How a long copy is seen and ended. */
export type CopyWatch = Pick<CopyRequest, 'signal' | 'onProgress'>;

/** Bytes that files take on their file system, holes left out. */
export async function takenTogether(paths: readonly string[]): Promise<number> {
  const taken = await Promise.all(paths.map(takenBytes));
  return taken.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Makes new files with the content of others, whose holes stay holes.
 * @param pairs path of the one that is there, and of the new one
 * @throws the signal's reason, the system's error: EEXIST, ENOSPC
 */
export async function copyFiles(
  pairs: readonly (readonly [string, string])[],
  { signal, onProgress }: CopyWatch,
): Promise<void> {
  const totalBytes = await takenTogether(pairs.map(([from]) => from));
  let doneBytes = 0;
  for (const [from, to] of pairs) {
    await copySparse(from, to, signal, (bytes) => {
      doneBytes += bytes;
      onProgress(Math.min(doneBytes, totalBytes), totalBytes);
    });
  }
}

async function copySparse(
  from: string,
  to: string,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<void> {
  await using source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
  await using target = await open(to, 'wx', 0o600);
  const { size } = await source.stat();
  await target.truncate(size);
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; at < size;) {
    const data = findData(source.fd, at);
    if (data === null) break;
    for (at = data.start; at < data.end;) {
      signal.throwIfAborted();
      const length = Math.min(CHUNK_BYTES, data.end - at);
      await copyChunk(source, target, buffer.subarray(0, length), at);
      at += length;
      onBytes(length);
    }
  }
}

/** All of it, whatever a single call does. */
async function copyChunk(
  source: FileHandle,
  target: FileHandle,
  chunk: Buffer,
  position: number,
): Promise<void> {
  for (let done = 0; done < chunk.length;) {
    const { bytesRead } = await source.read(chunk, done, chunk.length - done, position + done);
    if (bytesRead === 0) throw new Error('the disk shrank while it was copied');
    done += bytesRead;
  }
  for (let done = 0; done < chunk.length;) {
    const left = chunk.length - done;
    const { bytesWritten } = await target.write(chunk, done, left, position + done);
    done += bytesWritten;
  }
}
