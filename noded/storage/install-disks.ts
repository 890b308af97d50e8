import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { holdImages } from './hold-images.ts';

type Owner = Pick<InstanceRecord, 'disks' | 'instanceId'>;

/** The files that an installation fills. */
export interface InstallDisks {
  /** True if the old disks stay until `takeOver`. */
  readonly areBeside: boolean;
  pathOf(index: number): string;
  /** Creates missing files and empties the others. @throws AppError DISK_FULL, DISK_IN_USE */
  create(): Promise<void>;
  sync(): Promise<void>;
  /** Makes them the instance's disks. */
  takeOver(): Promise<void>;
  /** Frees their space. */
  discard(): Promise<void>;
}

export function diskPath(dir: string, index: number): string {
  return join(dir, `disk${index}.raw`);
}

/**
 * Returns the path of a new disk that replaces the present one when the installation with this id
 * succeeds. The record's instance id is that of its last successful installation. It decides over
 * such a file after a kill or a power cut.
 */
export function successorPath(dir: string, index: number, instanceId: string): string {
  return join(dir, `disk${index}.next-${instanceId}.raw`);
}

const SUCCESSOR = /^disk(\d+)\.next-([0-9a-f-]{36})\.raw$/;

/** Writes to disks whose content is worthless. */
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
    // An installation that created nothing leaves the old disks alone.
    discard: async () => {
      if (isEmptied) await create();
    },
  };
}

/**
 * Writes to new disks beside the old ones.
 * @param instance with the id of this installation
 */
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
 * Completes an ended reinstallation or restoration. Its disks replace the old ones if the record
 * names it, and are removed otherwise. Idempotent, also after a kill at any moment.
 * @param currentIds the record's instance id and the id of its last restoration
 * @param isDecided false while an installation that owns these disks may still succeed
 * @returns names of the files that it changed
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

/** Returns the bytes that a file occupies, without holes; 0 for a missing file. */
export async function takenBytes(path: string): Promise<number> {
  try {
    // In units of 512 bytes, whatever the file system's block size.
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

/** Syncs the directories too: a power cut would lose a new file's name. */
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
