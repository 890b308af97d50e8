import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { shareBlocks } from '../../../host/share-blocks.ts';
import { copyFiles, type CopyWatch, sharesBlocks, takenTogether } from '../../copy-disks.ts';
import type { DiskDriver } from '../../disk-driver.ts';
import { holdImages } from '../../hold-images.ts';
import { diskPath, listNames, settleDisks, successorPath } from '../../install-disks.ts';
import type { InstanceFolders } from '../../instance-folders.ts';
import {
  beginSnapshot,
  snapshotDir,
  type SnapshotVerbs,
  StandsStill,
  unfinishedDir,
  whileStill,
} from '../../snapshot-disks.ts';

const FINISHED = /^snapshot-([0-9a-f-]{36})$/;

/** Keeps snapshots below the instance's folder, as copies if blocks cannot be shared. */
export function createFileSnapshots(
  folders: InstanceFolders,
  { settle, requireDisks }: Pick<DiskDriver, 'settle' | 'requireDisks'>,
): SnapshotVerbs {
  const dirOf = folders.dirOf.bind(folders);
  // Shared disks are on another file system, where only the instance's own folder may be written.
  const folderOf = (instance: InstanceRecord): string =>
    instance.diskTemplate === 'sharedfile' ? dirOf(instance) : folders.disksDir;
  return {
    check: async (instance, mayCopy) => {
      await settle(instance);
      await requireDisks(instance);
      await folders.checkSpace(instance);
      const folder = folderOf(instance);
      if (await sharesBlocks(folder)) return;
      if (!mayCopy) throw sharesNone(folder);
      const paths = instance.disks.map((_, index) => diskPath(dirOf(instance), index));
      await folders.requireRoom(await takenTogether(paths), instance);
    },
    take: async (instance, uuid, { mayCopy, machine, commit, ...watch }) => {
      const dir = dirOf(instance);
      await using held = new AsyncDisposableStack();
      if (machine === undefined) held.use(await holdImages(dir));
      const unfinished = await beginSnapshot(dir, uuid);
      let stillMs: number;
      try {
        const pairs = instance.disks.map(
          (_, index) => [diskPath(dir, index), diskPath(unfinished, index)] as const,
        );
        stillMs = await whileStill(machine, () => cloneAll(pairs, mayCopy ? watch : null));
        await syncFlatDirectory(unfinished);
        await syncPath(dir);
      } catch (error) {
        // The next daemon resumes a guest that may still be paused.
        if (!(error instanceof StandsStill)) await rm(unfinished, { recursive: true, force: true });
        throw tellFull(error, dir);
      }
      await commit();
      await rename(unfinished, snapshotDir(dir, uuid));
      await syncPath(dir);
      return { stillMs };
    },
    checkRestore: async (instance, snapshot) => {
      await folders.checkSpace(instance);
      if (await sharesBlocks(folderOf(instance))) return;
      const from = snapshotDir(dirOf(instance), snapshot.uuid);
      const paths = snapshot.disks.map((_, index) => diskPath(from, index));
      const taken = await takenTogether(paths).catch((error: unknown) => {
        throw systemCodeOf(error) === 'ENOENT' ? missing(snapshot.name, from, error) : error;
      });
      await folders.requireRoom(taken, instance);
    },
    restore: async (instance, snapshot, { restoreId, commit, ...watch }) => {
      const dir = dirOf(instance);
      const from = snapshotDir(dir, snapshot.uuid);
      const next = (index: number): string => successorPath(dir, index, restoreId);
      {
        await using held = await holdImages(dir);
        void held;
        try {
          const pairs = snapshot.disks.map(
            (_, index) => [diskPath(from, index), next(index)] as const,
          );
          await cloneAll(pairs, watch);
          for (const index of snapshot.disks.keys()) await syncPath(next(index));
          await syncPath(dir);
        } catch (error) {
          for (const index of snapshot.disks.keys()) await rm(next(index), { force: true });
          if (systemCodeOf(error) === 'ENOENT') throw missing(snapshot.name, from, error);
          throw tellFull(error, dir);
        }
      }
      await commit();
      await settleDisks(dir, [restoreId]);
    },
    remove: async (instance, uuid, commit) => {
      const dir = dirOf(instance);
      const unfinished = unfinishedDir(dir, uuid);
      try {
        await rename(snapshotDir(dir, uuid), unfinished);
        await syncPath(dir);
      } catch (error) {
        // Without the folder only the record changes.
        if (systemCodeOf(error) !== 'ENOENT') throw error;
      }
      await commit();
      await rm(unfinished, { recursive: true, force: true });
    },
    listForgotten: async ({ uuid, snapshots }) => {
      await folders.reach({ uuid });
      return (await listNames(dirOf({ uuid })))
        .filter((name) => {
          const [, found] = FINISHED.exec(name) ?? [];
          return found !== undefined && snapshots.every((one) => one.uuid !== found);
        })
        .map((name) => `${uuid}/${name}`);
    },
  };
}

/**
 * Copies disks. Shares blocks if the file system supports it.
 * @param watch of copies; null refuses disks that cannot share blocks
 * @throws AppError NOT_SUPPORTED
 */
async function cloneAll(
  pairs: readonly (readonly [string, string])[],
  watch: CopyWatch | null,
): Promise<void> {
  for (const [index, [from, to]] of pairs.entries()) {
    if (await shareBlocks(from, to)) continue;
    if (watch === null) throw sharesNone(dirname(from));
    return copyFiles(pairs.slice(index), watch);
  }
}

function sharesNone(folder: string): AppError {
  return new AppError(
    'NOT_SUPPORTED',
    `the file system of ${folder} cannot share blocks, so a snapshot needs a full copy of the disks`,
    {
      details: { path: folder },
      hint: `Copy them with gnt-instance snapshot --copy: the guest pauses for some seconds per GiB. On btrfs or xfs a snapshot takes milliseconds and no space.`,
    },
  );
}

function missing(name: string, path: string, cause: unknown): AppError {
  return new AppError('DISK_MISSING', `the disks of snapshot '${name}' are missing in ${path}`, {
    details: { path },
    hint: 'Put the folder back, or remove the snapshot.',
    cause,
  });
}

function tellFull(error: unknown, dir: string): unknown {
  if (systemCodeOf(error) !== 'ENOSPC') return error;
  return new AppError('DISK_FULL', `${dir} is full: nothing was changed`, {
    hint: 'Remove instances or images that are not needed, or enlarge the file system.',
    cause: error,
  });
}
