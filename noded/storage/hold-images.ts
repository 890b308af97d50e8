import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { isByteLocked, tryLockImage } from '#shared/sys/file-locks.ts';
import { listHolders } from '../host/process-facts.ts';

/** RAW_LOCK_PERM_BASE + BLK_PERM_WRITE in QEMU's block/file-posix.c: writers lock this byte. */
const WRITER_BYTE = 100 + 1;

/**
 * Locks all files of a directory before they are emptied, renamed or removed. QEMU locks each open
 * image, so this detects unknown QEMU processes and prevents new ones until the result is disposed
 * of. Does nothing for a missing directory.
 * @throws AppError DISK_IN_USE naming the file and the process
 */
export async function holdImages(dir: string): Promise<AsyncDisposable> {
  await using held = new AsyncDisposableStack();
  for (const name of await listFiles(dir)) {
    const image = await holdImage(join(dir, name));
    if (image !== undefined) held.use(image);
  }
  const all = held.move();
  return { [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/**
 * Locks one file as `holdImages` does.
 * @returns the file, locked until it is closed; undefined if it does not exist
 * @throws AppError DISK_IN_USE
 */
export async function holdImage(path: string): Promise<FileHandle | undefined> {
  const image = await openImage(path);
  if (image === undefined || tryLockImage(image.fd)) return image;
  await using refused = image;
  throw await inUse(path, refused);
}

/**
 * Locks a block device as `holdImage` locks a file. A device that the host itself uses, mounted or
 * as a part of another device, is in use too.
 * @returns undefined if it does not exist
 * @throws AppError DISK_IN_USE
 */
export async function holdDevice(path: string): Promise<FileHandle | undefined> {
  try {
    const device = await open(
      await realpath(path),
      constants.O_RDWR | constants.O_NONBLOCK | constants.O_EXCL,
    );
    if (tryLockImage(device.fd)) return device;
    await using refused = device;
    throw await inUse(path, refused);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    if (systemCodeOf(error) !== 'EBUSY') throw error;
    await using taken = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    throw await inUse(path, taken);
  }
}

/**
 * @param image open for reading
 * @throws AppError DISK_IN_USE while a QEMU process may write to it
 */
export async function refuseWritten(path: string, image: FileHandle): Promise<void> {
  if (isByteLocked(image.fd, WRITER_BYTE)) throw await inUse(path, image);
}

async function listFiles(dir: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function openImage(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function inUse(path: string, image: FileHandle): Promise<AppError> {
  const holders = listHolders(await image.stat({ bigint: true }));
  const by = holders.length === 0 ? '' : ` by process ${holders.join(', ')}`;
  return new AppError('DISK_IN_USE', `${path} is in use${by}`, {
    details: { path, holders },
    hint: 'No job of this node uses it. Inspect the process (ps -fp PID) and end it, or wait until it ends.',
  });
}
