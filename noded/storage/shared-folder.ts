import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterRecord } from '#shared/contract/api.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath, writeDurably } from '#shared/files/durable.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { requireTrustedPath } from '../host/trusted-path.ts';
import { requireAnswer } from './folder-answers.ts';

/** Holds the UUID of the folder's cluster. The mount point of an unmounted folder has none. */
const MARKER = 'gnt-cluster-uuid';
const MAX_MARKER_BYTES = 64;

/**
 * Finds the folder that all nodes share, for disks of the template `sharedfile`. It contains one
 * folder per instance. The instance's node has a link to it at the place of a local folder. A scan
 * of a node's disks therefore sees only its own instances, and removing a link removes no disk.
 */
export interface SharedFolder {
  /**
   * Returns the folder after a check that it is the cluster's.
   * @throws AppError NOT_SUPPORTED: the cluster has none; HOST_PREREQUISITE
   */
  require(): Promise<string>;
}

type Settings = Pick<ClusterRecord, 'uuid' | 'sharedFileStorageDir'>;

export function createSharedFolder(load: () => Promise<Settings>): SharedFolder {
  return {
    require: async () => {
      const { uuid, sharedFileStorageDir } = await load();
      if (sharedFileStorageDir === undefined) throw hasNone();
      await proveSharedFolder(sharedFileStorageDir, uuid);
      return sharedFileStorageDir;
    },
  };
}

/** Used on a single node, or before the store is open. */
export const noSharedFolder: SharedFolder = { require: () => Promise.reject(hasNone()) };

/**
 * Claims a mounted folder for the cluster. Idempotent.
 * @throws AppError HOST_PREREQUISITE: it is another cluster's, or other users may write to it
 */
export async function claimSharedFolder(path: string, cluster: string): Promise<void> {
  await requireSafe(path);
  try {
    await writeDurably(join(path, MARKER), `${cluster}\n`, { mode: 0o600, isNew: true });
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw unusable(path, error);
  }
  await proveSharedFolder(path, cluster);
}

/** @throws AppError HOST_PREREQUISITE */
async function proveSharedFolder(path: string, cluster: string): Promise<void> {
  await requireSafe(path);
  const marker = join(path, MARKER);
  const owner = await readBounded(marker, MAX_MARKER_BYTES, { followLinks: false }).catch(
    (error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw unusable(path, error);
      return null;
    },
  );
  if (owner === null) {
    throw new AppError('HOST_PREREQUISITE', `${path} is not the shared folder of this cluster`, {
      details: { path },
      hint: `It has no ${marker}. Mount the folder here that the other nodes have.`,
    });
  }
  if (owner.toString('utf8').trim() === cluster) return;
  throw new AppError('HOST_PREREQUISITE', `${path} is the shared folder of another cluster`, {
    details: { path },
    hint: `${marker} holds that cluster's UUID. Give each cluster a folder of its own.`,
  });
}

/** Makes the folder of a new instance and the link to it. */
export async function makeShared(folder: string, uuid: string, link: string): Promise<void> {
  await mkdir(join(folder, uuid), { mode: 0o700 }).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'EEXIST') throw unusable(folder, error);
  });
  await syncPath(folder);
  await attachShared(folder, uuid, link);
}

/** Makes the link to the folder of a present instance. @throws AppError CONFLICT */
export async function attachShared(folder: string, uuid: string, link: string): Promise<void> {
  const target = join(folder, uuid);
  try {
    await symlink(target, link);
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error;
    if ((await readlink(link).catch(() => undefined)) === target) return;
    throw new AppError('CONFLICT', `${link} is not a link to ${target}`, {
      details: { path: link, target },
      hint: 'Inspect it and move it away.',
      cause: error,
    });
  }
  await syncPath(join(link, '..'));
}

/** Returns the target of an instance's link; undefined without a link. */
export async function sharedTarget(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Removes an instance's files. The caller holds them. */
export async function removeShared(folder: string, uuid: string): Promise<void> {
  await rm(join(folder, uuid), { recursive: true, force: true });
  await syncPath(folder);
}

async function requireSafe(path: string): Promise<void> {
  await requireAnswer(path);
  try {
    await requireTrustedPath(path, 'the shared folder');
    if (!(await lstat(`${path}/.`)).isDirectory()) throw new Error('it is not a folder');
  } catch (error) {
    if (isAppError(error)) throw error;
    throw unusable(path, error);
  }
}

function unusable(path: string, cause: unknown): AppError {
  return new AppError('HOST_PREREQUISITE', `the shared folder ${path}: ${messageOf(cause)}`, {
    details: { path },
    hint: 'Mount it on this node, writable for root.',
    cause,
  });
}

function hasNone(): AppError {
  return new AppError('NOT_SUPPORTED', 'the cluster has no folder for shared disks', {
    hint: 'Name a folder that every node has mounted: gnt-cluster modify --shared-file-storage-dir DIR',
  });
}
