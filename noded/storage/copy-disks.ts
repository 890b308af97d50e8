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

/** Length of one read: large enough for any disk's full speed, short enough to stop a copy soon. */
const CHUNK_BYTES = MIB;

/**
 * The folder of a copy in progress. Its name differs from an instance's folder. A daemon that finds
 * one asks the store for its owner; without an owner an interrupted job left it.
 */
const COPY = /^copying-([0-9a-f-]{36})$/;

export function copyDir(disksDir: string, uuid: string): string {
  return join(disksDir, `copying-${uuid}`);
}

export interface CopyRequest {
  /** The source. The caller holds its images. */
  readonly from: Installation;
  readonly count: number;
  readonly to: Pick<InstanceRecord, 'uuid' | 'instanceId'>;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
  /** Called if blocks cannot be shared. @throws AppError DISK_SPACE */
  readonly requireRoom: (bytes: number) => Promise<void>;
}

/**
 * Copies disks and their EFI variables. Disks share blocks if the file system supports it (btrfs,
 * xfs); otherwise holes stay holes.
 * @throws AppError DISK_SPACE
 */
export async function copyDisks(dir: string, request: CopyRequest): Promise<void> {
  const { from, count, to } = request;
  if (!(await cloneAll(from.dir, dir, count))) await copyAll(dir, request);
  await copyVariables(from, { dir, instanceId: to.instanceId });
}

/**
 * Fills the folder of a new instance. The folder is complete and synced when this resolves, and
 * gone when it rejects.
 * @throws AppError DISK_FULL, and the errors of `fill`
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

/** Gives a copy its final name, after the record is written. */
export async function takeCopy(disksDir: string, uuid: string): Promise<void> {
  await rename(copyDir(disksDir, uuid), join(disksDir, uuid));
  await syncPath(disksDir);
}

/**
 * Gives an interrupted copy with a record its final name. An instance that already has disks keeps
 * them.
 * @returns names of the folders that it changed
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

/** Returns the UUIDs of unfinished copies. */
export async function listCopies(disksDir: string): Promise<readonly string[]> {
  return (await readdir(disksDir)).flatMap((name) => COPY.exec(name)?.[1] ?? []);
}

/** Returns true if files in the directory can share blocks. Tries it with temporary files. */
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

/** @returns false if blocks cannot be shared; nothing is left then */
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

/** Progress and cancellation of a long copy. */
export type CopyWatch = Pick<CopyRequest, 'signal' | 'onProgress'>;

/** Returns the bytes that files occupy, without holes. */
export async function takenTogether(paths: readonly string[]): Promise<number> {
  const taken = await Promise.all(paths.map(takenBytes));
  return taken.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Copies files to new ones and keeps holes.
 * @param pairs present path and new path
 * @throws the signal's reason, or the system's error: EEXIST, ENOSPC
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

/** A single read or write may be short. */
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
