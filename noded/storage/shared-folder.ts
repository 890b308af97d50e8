import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterRecord } from '#shared/contract/api.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath, writeDurably } from '#shared/files/durable.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { requireTrustedPath } from '../host/trusted-path.ts';
import { requireAnswer } from './folder-answers.ts';

/** Says whose folder it is: the UUID of a cluster. A folder that is not mounted has none. */
const MARKER = 'gnt-cluster-uuid';
const MAX_MARKER_BYTES = 64;

/**
 * The folder that all nodes have, for disks of the template `sharedfile`. Each instance has its own
 * folder in it, and its node a link to that where the folder of a local instance would be: so
 * whatever looks through the disks of a node sees those of its own instances, and who removes a
 * link has removed no disk.
 */
export interface SharedFolder {
  /**
   * The folder, proven to be the cluster's on this node.
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

/** For a node without others, or before there is a store: there is no shared folder. */
export const noSharedFolder: SharedFolder = { require: () => Promise.reject(hasNone()) };

/**
 * Makes a folder that this node has mounted be the cluster's. One that is its own already stays so.
 * @throws AppError HOST_PREREQUISITE: it is another cluster's, or others may write it
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

/** Makes the folder of a new instance there, and the link to it. */
export async function makeShared(folder: string, uuid: string, link: string): Promise<void> {
  await mkdir(join(folder, uuid), { mode: 0o700 }).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'EEXIST') throw unusable(folder, error);
  });
  await syncPath(folder);
  await attachShared(folder, uuid, link);
}

/** Makes the link to the folder of an instance that is there. @throws AppError CONFLICT */
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

/** Where the link of an instance leads; undefined where there is none. */
export async function sharedTarget(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** The files of an instance of this node, for good. The caller holds them. */
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
