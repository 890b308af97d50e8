import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { changeDiskFiles, settleLeaving } from './change-disks.ts';
import { copyDisks, sharesBlocks, takenTogether } from '../../copy-disks.ts';
import type { DiskDriver } from '../../disk-driver.ts';
import { checkSize, requireFile, requireOwnFile } from '../../disk-files.ts';
import { settleVariables } from '../../firmware-variables.ts';
import { holdImages } from '../../hold-images.ts';
import { beside, diskPath, inPlace, settleDisks } from '../../install-disks.ts';
import { type InstanceFolders, MIN_FREE_BYTES } from '../../instance-folders.ts';
import { settleSnapshots } from '../../snapshot-disks.ts';
import { createFileSnapshots } from './file-snapshots.ts';

/**
 * Keeps disks as sparse raw files in the instance's folder. Only root may open them: QEMU gets
 * descriptors.
 */
export function createFileDriver(folders: InstanceFolders): DiskDriver {
  const dirOf = folders.dirOf.bind(folders);
  const pathOf: DiskDriver['pathOf'] = (instance, index) => diskPath(dirOf(instance), index);
  const requireOwn = async (instance: InstanceRecord): Promise<void> => {
    for (const index of instance.disks.keys())
      await requireOwnFile(instance, index, pathOf(instance, index));
  };
  const takenBy = (instance: InstanceRecord): Promise<number> =>
    takenTogether(instance.disks.map((_, index) => pathOf(instance, index)));
  const checkUnused: DiskDriver['checkUnused'] = (instance) => folders.checkFilesUnused(instance);
  const settle: DiskDriver['settle'] = async (instance) => {
    const dir = dirOf(instance);
    const { instanceId, restoreId, installState, disks, snapshots } = instance;
    return [
      ...(await folders.settleFolder(instance)),
      ...(await settleDisks(dir, [instanceId, restoreId], installState !== 'installing')),
      ...(await settleVariables(dir, instance)),
      ...(await settleLeaving(dir, disks)),
      ...(await settleSnapshots(dir, snapshots)),
    ];
  };
  const requireDisks: DiskDriver['requireDisks'] = async (instance) => {
    await folders.reach(instance);
    const paths = instance.disks.map((_, index) => pathOf(instance, index));
    await Promise.all(paths.map((path, index) => requireFile(instance, index, path)));
  };
  return {
    label: 'files',
    pathOf,
    settle,
    requireDisks,
    checkUnused,
    checkOverwrite: checkUnused,
    snapshots: createFileSnapshots(folders, { settle, requireDisks }),
    hold: async (instance) => {
      await requireOwn(instance);
      return holdImages(dirOf(instance));
    },
    checkSizes: async (disks, instance) => {
      const base = await folders.baseOf(instance);
      for (const { sizeBytes } of disks) await checkSize(base, sizeBytes);
    },
    roomBeside: async (instance, imageBytes) => {
      const possible = instance.disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      const neededBytes = Math.min(possible, Math.max(await takenBy(instance), imageBytes));
      const freeBytes = Math.max(0, await folders.roomOf(instance).unclaimedBytes());
      return { isEnough: freeBytes >= neededBytes + MIN_FREE_BYTES, neededBytes, freeBytes };
    },
    openForInstall: (instance, where) => {
      const dir = dirOf(instance);
      if (where.kind === 'in-place')
        return { ...inPlace(dir, instance), [Symbol.dispose]: () => undefined };
      const files = beside(dir, instance);
      const written = (): Promise<number> =>
        takenTogether(instance.disks.map((_, index) => files.pathOf(index)));
      const promise = folders.roomOf(instance).promise(where.neededBytes, written);
      return { ...files, [Symbol.dispose]: () => promise[Symbol.dispose]() };
    },
    grow: async (instance, index, sizeBytes) => {
      const path = pathOf(instance, index);
      await requireOwnFile(instance, index, path);
      await using held = await holdImages(dirOf(instance));
      void held;
      await using file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
      // An interrupted grow may have enlarged the file already.
      if ((await file.stat()).size < sizeBytes) await file.truncate(sizeBytes);
      await file.sync();
    },
    change: (instance, after, commit) =>
      changeDiskFiles(dirOf(instance), { before: instance.disks, after }, commit),
    copy: {
      check: async (from) => {
        await requireOwn(from);
        const isLocal = from.diskTemplate !== 'sharedfile';
        if (isLocal && (await sharesBlocks(folders.disksDir))) return;
        await folders.requireRoom(await takenBy(from));
      },
      fill: (dir, from, to, { signal, onProgress }) =>
        copyDisks(dir, {
          from: { dir: dirOf(from), instanceId: from.instanceId },
          count: from.disks.length,
          to,
          signal,
          onProgress,
          requireRoom: (bytes) => folders.requireRoom(bytes),
        }),
    },
  };
}
