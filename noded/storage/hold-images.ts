import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { isByteLocked, tryLockImage } from '#shared/sys/file-locks.ts';
import { listHolders } from '../host/process-facts.ts';

/** RAW_LOCK_PERM_BASE and BLK_PERM_WRITE of QEMU's block/file-posix.c: who may write locks it. */
const WRITER_BYTE = 100 + 1;

/**
 * Takes all files of a directory for this process alone, before they are emptied, renamed or
 * removed. QEMU locks every image that it has open, so a machine is seen that this daemon knows
 * nothing of, and none can start on these files until the answer is disposed of. Nothing where
 * there is no such directory.
 * @throws AppError DISK_IN_USE that names the file and who has it
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
 * Takes one file as `holdImages` takes them all.
 * @returns the file, which is taken until it is closed; undefined where there is none
 * @throws AppError DISK_IN_USE
 */
export async function holdImage(path: string): Promise<FileHandle | undefined> {
  const image = await openImage(path);
  if (image === undefined || tryLockImage(image.fd)) return image;
  await using refused = image;
  throw await inUse(path, refused);
}

/**
 * Takes a block device as `holdImage` takes a file; one that the host itself uses, mounted or as a
 * part of another device, is in use too.
 * @returns undefined where there is none
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

/** @param image open for reading. @throws AppError DISK_IN_USE while a machine may write to it */
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
