import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { holdImages } from './hold-images.ts';

type Owner = Pick<InstanceRecord, 'disks' | 'instanceId'>;

/** The files that an installation fills. */
export interface InstallDisks {
  /** What was on the instance's disks is still there, until `takeOver`. */
  readonly areBeside: boolean;
  pathOf(index: number): string;
  /** Makes what is missing and empties what is there. @throws AppError DISK_FULL, DISK_IN_USE */
  create(): Promise<void>;
  /** All that was written is on the disk when it resolves. */
  sync(): Promise<void>;
  /** They are the instance's disks from now on. */
  takeOver(): Promise<void>;
  /** Gives back the space that they took. */
  discard(): Promise<void>;
}

/** A disk of the instance. */
export function diskPath(dir: string, index: number): string {
  return join(dir, `disk${index}.raw`);
}

/**
 * The one that is to take its place when the installation with this id has succeeded. The store
 * says whether it has: the record's instance id is that of its last successful installation. So
 * whoever finds such a file knows what to do with it, whenever a daemon or the power went.
 */
export function successorPath(dir: string, index: number, instanceId: string): string {
  return join(dir, `disk${index}.next-${instanceId}.raw`);
}

const SUCCESSOR = /^disk(\d+)\.next-([0-9a-f-]{36})\.raw$/;

/** Disks whose former content is of no use to anybody. */
export function inPlace(dir: string, instance: Owner): InstallDisks {
  const pathOf = (index: number): string => diskPath(dir, index);
  let isEmptied = false;
  const create = async (): Promise<void> => {
    isEmptied = true;
    await createAll(instance, pathOf);
  };
  return {
    areBeside: false,
    ...{ pathOf, create },
    sync: () => syncAll(instance, pathOf),
    takeOver: () => Promise.resolve(),
    // What this installation has not touched may be worth something.
    discard: async () => {
      if (isEmptied) await create();
    },
  };
}

/** New disks beside the old ones. @param instance with the id of this installation */
export function beside(dir: string, instance: Owner): InstallDisks {
  const { instanceId } = instance;
  const pathOf = (index: number): string => successorPath(dir, index, instanceId);
  return {
    areBeside: true,
    pathOf,
    create: () => createAll(instance, pathOf),
    sync: () => syncAll(instance, pathOf),
    takeOver: async () => void (await settleDisks(dir, [instanceId])),
    discard: async () => {
      for (const index of instance.disks.keys()) await rm(pathOf(index), { force: true });
    },
  };
}

/**
 * Does what is left to do of a reinstallation, or of the restoration of a snapshot, that has ended:
 * its disks take the place of the old ones when it is one that the record tells of, and go when it
 * is not. Idempotent, and right after a kill at any moment.
 * @param currentIds the record's instance id and the id of its last restoration
 * @param isDecided false while the record may still become that of an installation whose disks
 * these are
 * @returns names of the files that were dealt with
 * @throws AppError DISK_IN_USE
 */
export async function settleDisks(
  dir: string,
  currentIds: readonly (string | null)[],
  isDecided = true,
): Promise<readonly string[]> {
  const successors = (await listNames(dir)).flatMap((name) => {
    const [, index, id] = SUCCESSOR.exec(name) ?? [];
    return index === undefined || id === undefined
      ? []
      : [{ name, index: Number(index), isCurrent: currentIds.includes(id) }];
  });
  const found = successors.filter(({ isCurrent }) => isCurrent || isDecided);
  if (found.length === 0) return [];
  await using held = new AsyncDisposableStack();
  held.use(await holdImages(dir));
  for (const { name, index, isCurrent } of found) {
    if (isCurrent) await rename(join(dir, name), diskPath(dir, index));
    else await rm(join(dir, name), { force: true });
  }
  await syncPath(dir);
  return found.map(({ name }) => name);
}

/** Bytes that a file has on the disk: holes take none. Nothing when there is no such file. */
export async function takenBytes(path: string): Promise<number> {
  try {
    // In blocks of 512 bytes, whatever the file system's are.
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}

async function createAll({ disks }: Owner, pathOf: (index: number) => string): Promise<void> {
  for (const [index, { sizeBytes }] of disks.entries()) {
    await createSparseFile(pathOf(index), sizeBytes);
  }
}

/** The names too: a file without one is lost with the power. */
async function syncAll({ disks }: Owner, pathOf: (index: number) => string): Promise<void> {
  const paths = [...disks.keys()].map(pathOf);
  for (const path of paths) await syncPath(path);
  for (const dir of new Set(paths.map((path) => dirname(path)))) {
    await syncPath(dir);
    await syncPath(dirname(dir));
  }
}

export async function listNames(dir: string): Promise<readonly string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

export async function createSparseFile(path: string, sizeBytes: number): Promise<void> {
  try {
    await using file = await open(path, 'w', 0o600);
    await file.truncate(sizeBytes);
  } catch (error) {
    throw new AppError(
      'DISK_FULL',
      `${path} could not be created with ${sizeBytes} bytes: ${messageOf(error)}`,
      {
        hint: 'Free space on that file system, or choose smaller disks.',
        cause: error,
      },
    );
  }
}
