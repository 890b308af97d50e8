import { constants } from 'node:fs';
import { chmod, mkdir, open, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { ActiveDisk } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { holdImages } from './hold-images.ts';

/** Less than this on the disks' file system, and an installation is refused rather than tried. */
const MIN_FREE_BYTES = 64 * MIB;

/** Linux' `O_TMPFILE`, which Node has no name for (`fcntl-linux.h`, the same on amd64 and arm64). */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Sparse raw files, one directory per instance, that only root may open: QEMU gets descriptors. */
export interface InstanceDisks {
  pathOf(instance: InstanceRecord, index: number): string;
  /** @throws AppError DISK_SPACE */
  checkSpace(): Promise<void>;
  freeBytes(): Promise<number>;
  /**
   * Whether the file system can hold files of these sizes at all, sparse as they are.
   * @throws AppError VALIDATION
   */
  checkSizes(disks: readonly { readonly sizeBytes: number }[]): Promise<void>;
  /**
   * Whether nobody has them open, a machine that this daemon knows nothing of included.
   * @throws AppError DISK_IN_USE
   */
  checkUnused(instance: Pick<InstanceRecord, 'uuid'>): Promise<void>;
  /**
   * Makes what is missing and empties what is there: an installation starts from zeros.
   * @throws AppError DISK_IN_USE, DISK_FULL
   */
  createEmpty(instance: InstanceRecord): Promise<void>;
  /** The files that are there. @throws AppError DISK_MISSING naming the file */
  activate(instance: InstanceRecord): Promise<readonly ActiveDisk[]>;
  /**
   * Removes the instance's disks; it is no error when there are none.
   * @throws AppError DISK_IN_USE
   */
  remove(instance: Pick<InstanceRecord, 'uuid'>): Promise<void>;
}

export function createInstanceDisks(disksDir: string): InstanceDisks {
  const dirOf = (instance: Pick<InstanceRecord, 'uuid'>): string => join(disksDir, instance.uuid);
  const pathOf = (instance: InstanceRecord, index: number): string =>
    join(dirOf(instance), `disk${index}.raw`);
  const freeBytes = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(disksDir);
    return bavail * bsize;
  };
  return {
    pathOf,
    freeBytes,
    checkSpace: async () => {
      const free = await freeBytes();
      if (free >= MIN_FREE_BYTES) return;
      throw new AppError(
        'DISK_SPACE',
        `only ${Math.floor(free / MIB)} MiB are free on ${disksDir}`,
        {
          hint: 'remove instances or images that are not needed, or make the file system larger',
        },
      );
    },
    checkSizes: async (disks) => {
      for (const { sizeBytes } of disks) await checkSize(disksDir, sizeBytes);
    },
    checkUnused: async (instance) => (await holdImages(dirOf(instance)))[Symbol.asyncDispose](),
    createEmpty: async (instance) => {
      await using held = new AsyncDisposableStack();
      held.use(await holdImages(dirOf(instance)));
      await mkdir(dirOf(instance), { recursive: true, mode: 0o700 });
      await chmod(dirOf(instance), 0o700);
      for (const [index, disk] of instance.disks.entries()) {
        await createSparseFile(pathOf(instance, index), disk.sizeBytes);
      }
    },
    activate: (instance) =>
      Promise.all(
        instance.disks.map(async ({ name, sizeBytes }, index) => {
          const path = pathOf(instance, index);
          await requireFile(instance, index, path);
          return { index, name, sizeBytes, path };
        }),
      ),
    remove: async (instance) => {
      await using held = new AsyncDisposableStack();
      held.use(await holdImages(dirOf(instance)));
      await rm(dirOf(instance), { recursive: true, force: true });
    },
  };
}

/** Asks the file system itself, by a file that has no name and is gone when it is closed. */
async function checkSize(directory: string, sizeBytes: number): Promise<void> {
  try {
    await using file = await open(directory, O_TMPFILE | constants.O_RDWR, 0o600);
    await file.truncate(sizeBytes);
  } catch (error) {
    if (systemCodeOf(error) !== 'EFBIG') return; // it will be told where it matters
    const gib = Math.ceil(sizeBytes / GIB);
    throw new AppError('VALIDATION', `a disk of ${gib} GiB is more than a file can have here`, {
      hint: `give a smaller size, or put ${directory} on a file system that has larger files`,
      cause: error,
    });
  }
}

async function requireFile(instance: InstanceRecord, index: number, path: string): Promise<void> {
  try {
    if ((await stat(path)).isFile()) return;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
  throw new AppError('DISK_MISSING', `disk ${index} of '${instance.name}' is not at ${path}`, {
    details: { path },
    hint: `put the file back, or gnt-instance reinstall ${instance.name} makes an empty one and installs it`,
  });
}

async function createSparseFile(path: string, sizeBytes: number): Promise<void> {
  try {
    await using file = await open(path, 'w', 0o600);
    await file.truncate(sizeBytes);
  } catch (error) {
    throw new AppError(
      'DISK_FULL',
      `${path} could not be made with ${sizeBytes} bytes: ${messageOf(error)}`,
      {
        hint: 'free space on that file system, or give smaller disks',
        cause: error,
      },
    );
  }
}
