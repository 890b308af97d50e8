import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, realpath, rm, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { syncPath } from '#shared/files/durable.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { changeDiskFiles, settleLeaving } from './change-disks.ts';
import {
  copyDisks,
  dropCopy,
  fillCopy,
  listCopies,
  sharesBlocks,
  takeCopy,
  takeLeftCopy,
} from './copy-disks.ts';
import { checkSize, requireFile, requireOwnFile } from './disk-files.ts';
import { createDiskRoom, type DiskRoom } from './disk-room.ts';
import { settleVariables, variablesPath } from './firmware-variables.ts';
import { holdImages } from './hold-images.ts';
import { beside, diskPath, inPlace, listNames, settleDisks, takenBytes } from './install-disks.ts';
import type { InstanceDisks } from './instance-disks.ts';
import {
  attachShared,
  makeShared,
  noSharedFolder,
  removeShared,
  type SharedFolder,
  sharedTarget,
} from './shared-folder.ts';
import { settleSnapshots, SNAPSHOT_PREFIX } from './snapshot-disks.ts';

/** Less than this on the disks' file system, and an installation is refused rather than tried. */
const MIN_FREE_BYTES = 64 * MIB;

type NewPlace = Pick<InstanceRecord, 'uuid' | 'diskTemplate'>;

/**
 * @param bringBack gives disks their name back that were leaving, if they are this node's: asked
 * where an instance has none
 * @param shared where the folders of instances with shared disks are: here are links to them
 */
export function createInstanceDisks(
  disksDir: string,
  bringBack: (uuid: string) => Promise<void> = () => Promise.resolve(),
  shared: SharedFolder = noSharedFolder,
): InstanceDisks {
  const dirOf = (instance: Pick<InstanceRecord, 'uuid'>): string => join(disksDir, instance.uuid);
  const pathOf = (instance: InstanceRecord, index: number): string =>
    diskPath(dirOf(instance), index);
  const seedPathOf = (instance: Pick<InstanceRecord, 'uuid'>): string =>
    join(dirOf(instance), 'seed.img');
  const freeOf = async (folder: string): Promise<number> => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  };
  const freeBytes = (): Promise<number> => freeOf(disksDir);
  const requireShared = async (): Promise<string> => {
    const folder = await shared.require();
    const [outer, inner] = await Promise.all([realpath(disksDir), realpath(folder)]);
    if (inner !== outer && !inner.startsWith(`${outer}/`)) return folder;
    throw new AppError('HOST_PREREQUISITE', `the shared folder ${folder} lies inside ${disksDir}`, {
      details: { path: folder },
      hint: 'Name a folder outside of it: gnt-cluster modify --shared-file-storage-dir DIR',
    });
  };
  type Place = Pick<InstanceRecord, 'diskTemplate'> | undefined;
  const folderOf = async (instance: Place): Promise<string> =>
    instance?.diskTemplate === 'sharedfile' ? requireShared() : disksDir;
  const room = createDiskRoom(freeBytes);
  const sharedRoom = createDiskRoom(async () => freeOf(await requireShared()));
  const roomOf = (instance: Place): DiskRoom =>
    instance?.diskTemplate === 'sharedfile' ? sharedRoom : room;
  /** An instance may have come to this node since its disks were used last. */
  const attach = async ({ uuid, diskTemplate }: NewPlace): Promise<void> => {
    if (diskTemplate !== 'sharedfile') return;
    await attachShared(await requireShared(), uuid, dirOf({ uuid }));
  };
  const reach: InstanceDisks['reach'] = async ({ uuid, diskTemplate }) => {
    const isShared =
      diskTemplate === undefined
        ? (await sharedTarget(dirOf({ uuid }))) !== undefined
        : diskTemplate === 'sharedfile';
    if (isShared) await requireShared();
  };
  const makeDir = async (instance: NewPlace): Promise<void> => {
    const dir = dirOf(instance);
    if (instance.diskTemplate === 'sharedfile')
      return makeShared(await requireShared(), instance.uuid, dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await chmod(dir, 0o700);
  };
  const requireRoom: InstanceDisks['requireRoom'] = async (bytes, instance) => {
    const free = Math.max(0, await roomOf(instance).unclaimedBytes());
    if (free >= bytes + MIN_FREE_BYTES) return;
    const [needed, there] = [bytes, free].map((size) => `${Math.ceil(size / MIB)} MiB`);
    const folder = await folderOf(instance);
    throw new AppError('DISK_SPACE', `the disks need ${needed}, ${there} are free on ${folder}`, {
      hint: 'Remove instances or images that are not needed, or enlarge the file system.',
    });
  };
  const activate: InstanceDisks['activate'] = async (instance) => {
    await reach(instance);
    return await Promise.all(
      instance.disks.map(async ({ name, sizeBytes }, index) => {
        const path = pathOf(instance, index);
        await requireFile(instance, index, path);
        return { index, name, sizeBytes, path };
      }),
    );
  };
  const bringBackMissing = async (uuid: string): Promise<void> => {
    // A link is there, wherever it leads.
    const isThere = await lstat(join(disksDir, uuid)).then(
      () => true,
      (error: unknown) => systemCodeOf(error) !== 'ENOENT',
    );
    if (!isThere) await bringBack(uuid);
  };
  /** Copies under way, whose jobs give them their names. */
  const copying = new Set<string>();
  const make: InstanceDisks['make'] = async (to, { fill, commit, isThere }) => {
    copying.add(to.uuid);
    using ended = { [Symbol.dispose]: () => void copying.delete(to.uuid) };
    void ended;
    await fillCopy(disksDir, to.uuid, fill);
    try {
      const result = await commit();
      await takeCopy(disksDir, to.uuid);
      return result;
    } catch (error) {
      // Who cannot be asked keeps it: the next daemon asks again.
      if (!(await isThere(to.uuid))) await dropCopy(disksDir, to.uuid);
      throw error;
    }
  };
  const settle: InstanceDisks['settle'] = async (instance) => [
    ...(await takeLeftCopy(disksDir, instance.uuid)),
    ...(await bringBackMissing(instance.uuid).then(() => [])),
    ...(await attach(instance).then(() => [])),
    ...(await settleDisks(
      dirOf(instance),
      [instance.instanceId, instance.restoreId],
      instance.installState !== 'installing',
    )),
    ...(await settleVariables(dirOf(instance), instance)),
    ...(await settleLeaving(dirOf(instance), instance.disks)),
    ...(await settleSnapshots(dirOf(instance), instance.snapshots)),
  ];
  const requireOwn = async (instance: InstanceRecord): Promise<void> => {
    for (const index of instance.disks.keys())
      await requireOwnFile(instance, index, pathOf(instance, index));
  };
  const hold: InstanceDisks['hold'] = async (instance) => {
    await settle(instance);
    await requireOwn(instance);
    return holdImages(dirOf(instance));
  };
  const checkUnused: InstanceDisks['checkUnused'] = async (instance) => {
    await reach(instance);
    await (await holdImages(dirOf(instance)))[Symbol.asyncDispose]();
  };
  const openForInstall: InstanceDisks['openForInstall'] = (instance, where) => {
    const dir = dirOf(instance);
    const files = where.kind === 'beside' ? beside(dir, instance) : inPlace(dir, instance);
    const kept =
      where.kind === 'beside'
        ? roomOf(instance).promise(where.neededBytes, () =>
            sumTaken(instance, (index) => files.pathOf(index)),
          )
        : null;
    return {
      ...files,
      create: async () => {
        await using held = new AsyncDisposableStack();
        await makeDir(instance);
        held.use(await holdImages(dir));
        await files.create();
      },
      [Symbol.dispose]: () => kept?.[Symbol.dispose](),
    };
  };
  return {
    pathOf,
    reach,
    hold,
    requireRoom,
    freeBytes,
    openForInstall,
    totalBytes: async () => {
      const { blocks, bsize } = await statfs(disksDir);
      return blocks * bsize;
    },
    checkShared: async (instance) => {
      const dir = join(await requireShared(), instance.uuid);
      for (const index of instance.disks.keys())
        await requireOwnFile(instance, index, diskPath(dir, index));
      await (await holdImages(dir))[Symbol.asyncDispose]();
    },
    detach: async (uuid) => {
      if ((await sharedTarget(dirOf({ uuid }))) === undefined) return;
      await unlink(dirOf({ uuid }));
      await syncPath(disksDir);
    },
    volumeRoom: () => Promise.resolve({}),
    isPoolFull: () => Promise.resolve(null),
    listAbsent: () => Promise.resolve([]),
    hasFiles: async ({ uuid }) => {
      const dir = dirOf({ uuid });
      // What a link leads to may hang, and is never a volume's.
      if ((await sharedTarget(dir)) !== undefined) return true;
      return (await listNames(dir)).some((name) => /^disk\d+\.raw/.test(name));
    },
    list: async () => {
      const names = await readdir(disksDir);
      return names.filter((name) => z.uuid().safeParse(name).success);
    },
    ownBytes: (instance) => ownBytes(dirOf(instance)),
    checkSpace: async (instance) => {
      const folder = await folderOf(instance);
      const free = await roomOf(instance).unclaimedBytes();
      if (free >= MIN_FREE_BYTES) return;
      throw new AppError(
        'DISK_SPACE',
        `only ${Math.max(0, Math.floor(free / MIB))} MiB are free on ${folder}`,
        {
          hint: 'Remove instances or images that are not needed, or enlarge the file system.',
        },
      );
    },
    checkSizes: async (disks, instance) => {
      const folder = await folderOf(instance);
      for (const { sizeBytes } of disks) await checkSize(folder, sizeBytes);
    },
    ...{ checkUnused, checkOverwrite: checkUnused },
    createEmpty: async (instance) => {
      using files = openForInstall(instance, { kind: 'in-place' });
      await files.create();
      await files.sync();
    },
    roomBeside: async (instance, imageBytes) => {
      const taken = await sumTaken(instance, (index) => pathOf(instance, index));
      const possible = instance.disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      const neededBytes = Math.min(possible, Math.max(taken, imageBytes));
      const unclaimed = Math.max(0, await roomOf(instance).unclaimedBytes());
      const isEnough = unclaimed >= neededBytes + MIN_FREE_BYTES;
      return { isEnough, neededBytes, freeBytes: unclaimed };
    },
    grow: async (instance, index, sizeBytes) => {
      await settle(instance);
      const path = pathOf(instance, index);
      await requireOwnFile(instance, index, path);
      await using held = await holdImages(dirOf(instance));
      void held;
      await using file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
      // One that a job which was cut off made larger stays so.
      if ((await file.stat()).size < sizeBytes) await file.truncate(sizeBytes);
      await file.sync();
    },
    growBelow: () => Promise.resolve(),
    variablesPathOf: (instance) => variablesPath(dirOf(instance), instance.instanceId),
    seedPathOf,
    removeSeed: async (instance) => {
      await reach(instance);
      await rm(seedPathOf(instance), { force: true });
    },
    change: async (instance, after, commit) => {
      await settle(instance);
      await activate(instance);
      return changeDiskFiles(dirOf(instance), { before: instance.disks, after }, commit);
    },
    checkCopy: async (from) => {
      await settle(from);
      await requireOwn(from);
      if (from.diskTemplate !== 'sharedfile' && (await sharesBlocks(disksDir))) return;
      await requireRoom(await sumTaken(from, (index) => pathOf(from, index)));
    },
    copy: async (from, to, { signal, onProgress, commit, isThere }) => {
      await using held = await hold(from);
      void held;
      const source = { dir: dirOf(from), instanceId: from.instanceId };
      const request = { from: source, count: from.disks.length, to };
      const fill = (dir: string): Promise<void> =>
        copyDisks(dir, { ...request, signal, onProgress, requireRoom });
      return await make(to, { fill, commit, isThere });
    },
    make,
    listCopies: async () => (await listCopies(disksDir)).filter((uuid) => !copying.has(uuid)),
    settleCopy: async (uuid, isThere) => {
      if (copying.has(uuid)) return;
      if (await isThere(uuid)) await takeLeftCopy(disksDir, uuid);
      else await dropCopy(disksDir, uuid);
    },
    settle,
    activate,
    remove: async (instance, beforeIt) => {
      // Or they come back later, as disks of nobody.
      await bringBackMissing(instance.uuid);
      const { uuid, diskTemplate } = instance;
      if (diskTemplate !== undefined) await attach({ uuid, diskTemplate });
      // The link of one with disks on this node is an operator's own.
      const target = diskTemplate === 'file' ? undefined : await sharedTarget(dirOf(instance));
      const folder = target === undefined ? undefined : await requireShared();
      await using held = new AsyncDisposableStack();
      held.use(await holdImages(dirOf(instance)));
      await beforeIt?.();
      if (folder !== undefined && target === join(folder, instance.uuid))
        await removeShared(folder, instance.uuid);
      await rm(dirOf(instance), { recursive: true, force: true });
      // Or a power cut brings them back, without a record.
      await syncPath(disksDir);
    },
  };
}

async function ownBytes(dir: string): Promise<number> {
  // What a link leads to is on another file system, and may hang.
  if ((await sharedTarget(dir)) !== undefined) return 0;
  const names = await readdir(dir).catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  });
  if (names.some((name) => name.startsWith(SNAPSHOT_PREFIX))) return 0;
  const disks = names.filter((name) => /^disk\d+\.raw$/.test(name));
  const taken = await Promise.all(disks.map((name) => takenBytes(join(dir, name))));
  return taken.reduce((sum, bytes) => sum + bytes, 0);
}

async function sumTaken(
  { disks }: InstanceRecord,
  pathOf: (index: number) => string,
): Promise<number> {
  const taken = await Promise.all([...disks.keys()].map((index) => takenBytes(pathOf(index))));
  return taken.reduce((sum, bytes) => sum + bytes, 0);
}
