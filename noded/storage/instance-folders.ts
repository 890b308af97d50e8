import { chmod, lstat, mkdir, readdir, realpath, rm, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { syncPath } from '#shared/files/durable.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { dropCopy, fillCopy, listCopies, takeCopy, takeLeftCopy } from './copy-disks.ts';
import type { Known } from './disk-driver.ts';
import { requireOwnFile } from './disk-files.ts';
import { createDiskRoom, type DiskRoom } from './disk-room.ts';
import { variablesPath } from './firmware-variables.ts';
import { holdImages } from './hold-images.ts';
import { diskPath, listNames, takenBytes } from './install-disks.ts';
import {
  attachShared,
  makeShared,
  noSharedFolder,
  removeShared,
  type SharedFolder,
  sharedTarget,
} from './shared-folder.ts';
import { SNAPSHOT_PREFIX } from './snapshot-disks.ts';

/** Free bytes below which an installation is refused rather than tried. */
export const MIN_FREE_BYTES = 64 * MIB;

/** The template of the disks. Undefined stands for the node's own file system. */
type Place = Pick<InstanceRecord, 'diskTemplate'> | undefined;
type NewFolder = Pick<InstanceRecord, 'uuid' | 'diskTemplate'>;

export interface FolderParts {
  /**
   * Renames the folder of an instance back if a move took it away and did not finish. Called if an
   * instance of this node has no folder.
   */
  readonly bringBack?: (uuid: string) => Promise<void>;
  readonly shared?: SharedFolder;
}

/** Makes the disks of a new instance around the commit of its record. */
export interface NewDisks<Result> {
  /** Writes the record. From then on the disks belong to the instance. */
  readonly commit: () => Promise<Result>;
  readonly isThere: (uuid: string) => Promise<boolean>;
}

/**
 * Keeps the folder of each instance, whatever its disk template: one below `disksDir`, which only
 * root may open, or a link to one in the shared folder. It holds the EFI variables, the seed disk,
 * and the disks that are files.
 */
export class InstanceFolders {
  readonly disksDir: string;
  readonly #bringBack: (uuid: string) => Promise<void>;
  readonly #shared: SharedFolder;
  readonly #room = createDiskRoom(() => this.freeBytes());
  readonly #sharedRoom = createDiskRoom(async () => freeBytesOf(await this.#requireShared()));
  /** UUIDs of instances whose copy runs in a job, which renames it at its end. */
  readonly #copying = new Set<string>();

  constructor(
    disksDir: string,
    { bringBack = () => Promise.resolve(), shared = noSharedFolder }: FolderParts = {},
  ) {
    this.disksDir = disksDir;
    this.#bringBack = bringBack;
    this.#shared = shared;
  }

  dirOf({ uuid }: Pick<InstanceRecord, 'uuid'>): string {
    return join(this.disksDir, uuid);
  }

  /** Returns the path of the EFI variables of one installation. */
  variablesPathOf(instance: Pick<InstanceRecord, 'uuid' | 'instanceId'>): string {
    return variablesPath(this.dirOf(instance), instance.instanceId);
  }

  /** Returns the path of the seed disk, which exists while its QEMU process starts. */
  seedPathOf(instance: Pick<InstanceRecord, 'uuid'>): string {
    return join(this.dirOf(instance), 'seed.img');
  }

  /** Unlinks the seed disk, which holds the user's data. A process that has it open keeps it. */
  async removeSeed(instance: Known): Promise<void> {
    await this.reach(instance);
    await rm(this.seedPathOf(instance), { force: true });
  }

  /** Returns the free bytes of the node's file system for disks. */
  freeBytes(): Promise<number> {
    return freeBytesOf(this.disksDir);
  }

  /** Returns the size of the node's file system for disks. */
  async totalBytes(): Promise<number> {
    const { blocks, bsize } = await statfs(this.disksDir);
    return blocks * bsize;
  }

  /** Returns the reservations of the file system. */
  roomOf(instance?: Place): DiskRoom {
    return instance?.diskTemplate === 'sharedfile' ? this.#sharedRoom : this.#room;
  }

  /**
   * Returns the directory whose file system holds the files of such an instance.
   * @throws AppError HOST_PREREQUISITE, NOT_SUPPORTED (shared folder)
   */
  async baseOf(instance?: Place): Promise<string> {
    return instance?.diskTemplate === 'sharedfile' ? this.#requireShared() : this.disksDir;
  }

  /**
   * Refuses a nearly full file system. Volume groups are checked by `checkSizes`.
   * @throws AppError DISK_SPACE; HOST_PREREQUISITE, NOT_SUPPORTED (shared folder)
   */
  async checkSpace(instance?: Place): Promise<void> {
    const base = await this.baseOf(instance);
    const free = await this.roomOf(instance).unclaimedBytes();
    if (free >= MIN_FREE_BYTES) return;
    const mib = Math.max(0, Math.floor(free / MIB));
    throw tooFull(`only ${mib} MiB are free on ${base}`);
  }

  /**
   * Refuses new files of this size.
   * @throws AppError DISK_SPACE; HOST_PREREQUISITE, NOT_SUPPORTED (shared folder)
   */
  async requireRoom(bytes: number, instance?: Place): Promise<void> {
    const free = Math.max(0, await this.roomOf(instance).unclaimedBytes());
    if (free >= bytes + MIN_FREE_BYTES) return;
    const [needed, there] = [bytes, free].map((size) => `${Math.ceil(size / MIB)} MiB`);
    const base = await this.baseOf(instance);
    throw tooFull(`the disks need ${needed}, ${there} are free on ${base}`);
  }

  /**
   * Checks that the file server of a shared folder answers, because a system call on a dead one
   * hangs. Call it before any other call on a path that may lead through the instance's link.
   * @throws AppError HOST_PREREQUISITE, NOT_SUPPORTED
   */
  async reach({ uuid, diskTemplate }: Known): Promise<void> {
    const isShared =
      diskTemplate === undefined
        ? (await sharedTarget(this.dirOf({ uuid }))) !== undefined
        : diskTemplate === 'sharedfile';
    if (isShared) await this.#requireShared();
  }

  /** @throws AppError DISK_IN_USE, HOST_PREREQUISITE, NOT_SUPPORTED */
  async checkFilesUnused(instance: Known): Promise<void> {
    await this.reach(instance);
    await (await holdImages(this.dirOf(instance)))[Symbol.asyncDispose]();
  }

  /** Makes the folder of an instance if it has none. */
  async makeFolder(instance: NewFolder): Promise<void> {
    const dir = this.dirOf(instance);
    if (instance.diskTemplate === 'sharedfile')
      return makeShared(await this.#requireShared(), instance.uuid, dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await chmod(dir, 0o700);
  }

  /**
   * Ends interrupted copies and moves of the folder, and links an instance that came to this node.
   * @returns names of the folders that it renamed
   */
  async settleFolder(instance: NewFolder): Promise<readonly string[]> {
    const taken = await takeLeftCopy(this.disksDir, instance.uuid);
    await this.#bringBackMissing(instance.uuid);
    await this.#attach(instance);
    return taken;
  }

  /**
   * Removes the folder with all files. Does nothing without a folder.
   * @param beforeIt called when all files are locked and still there
   * @throws AppError DISK_IN_USE
   */
  async removeFolder(instance: Known, beforeIt: () => Promise<void>): Promise<void> {
    const { uuid, diskTemplate } = instance;
    const dir = this.dirOf(instance);
    // Otherwise the folder would come back later, without an instance.
    await this.#bringBackMissing(uuid);
    if (diskTemplate !== undefined) await this.#attach({ uuid, diskTemplate });
    // A link of an instance with local disks is an operator's own.
    const target = diskTemplate === 'file' ? undefined : await sharedTarget(dir);
    const folder = target === undefined ? undefined : await this.#requireShared();
    await using held = await holdImages(dir);
    void held;
    await beforeIt();
    if (folder !== undefined && target === join(folder, uuid)) await removeShared(folder, uuid);
    await rm(dir, { recursive: true, force: true });
    // Otherwise a power cut could restore the folder without a record.
    await syncPath(this.disksDir);
  }

  /**
   * Checks that the shared disks of another node's instance exist, and that no process of this node
   * has them open.
   * @throws AppError DISK_MISSING, DISK_IN_USE, HOST_PREREQUISITE
   */
  async checkShared(instance: InstanceRecord): Promise<void> {
    const dir = join(await this.#requireShared(), instance.uuid);
    for (const index of instance.disks.keys())
      await requireOwnFile(instance, index, diskPath(dir, index));
    await (await holdImages(dir))[Symbol.asyncDispose]();
  }

  /** Removes the link to shared disks that another node now has. Does nothing without a link. */
  async detach(uuid: string): Promise<void> {
    if ((await sharedTarget(this.dirOf({ uuid }))) === undefined) return;
    await unlink(this.dirOf({ uuid }));
    await syncPath(this.disksDir);
  }

  /** Returns true if an instance has disks that are files, on this node or in the shared folder. */
  async hasFiles(instance: Pick<InstanceRecord, 'uuid'>): Promise<boolean> {
    const dir = this.dirOf(instance);
    // The target of a link may hang, and never belongs to volumes.
    if ((await sharedTarget(dir)) !== undefined) return true;
    return (await listNames(dir)).some((name) => /^disk\d+\.raw/.test(name));
  }

  /** Returns the UUIDs of the instances that have a folder here. */
  async list(): Promise<readonly string[]> {
    return (await readdir(this.disksDir)).filter((name) => z.uuid().safeParse(name).success);
  }

  /**
   * Returns the bytes of the node's file system that an instance's disks can overwrite in place: 0
   * with snapshots, which share their blocks.
   */
  async ownBytes(instance: Pick<InstanceRecord, 'uuid'>): Promise<number> {
    const dir = this.dirOf(instance);
    // The target of a link is on another file system, and may hang.
    if ((await sharedTarget(dir)) !== undefined) return 0;
    const names = await listNames(dir);
    if (names.some((name) => name.startsWith(SNAPSHOT_PREFIX))) return 0;
    const disks = names.filter((name) => /^disk\d+\.raw$/.test(name));
    const taken = await Promise.all(disks.map((name) => takenBytes(join(dir, name))));
    return taken.reduce((sum, bytes) => sum + bytes, 0);
  }

  /**
   * Makes the folder of a new instance. A failure or a kill before the commit leaves nothing.
   * @param how `fill` makes its files
   * @throws AppError DISK_FULL, and the errors of `fill`
   */
  async make<Result>(
    { uuid }: Pick<InstanceRecord, 'uuid'>,
    how: NewDisks<Result> & { readonly fill: (dir: string) => Promise<void> },
  ): Promise<Result> {
    this.#copying.add(uuid);
    using ended = { [Symbol.dispose]: () => void this.#copying.delete(uuid) };
    void ended;
    await fillCopy(this.disksDir, uuid, how.fill);
    try {
      const result = await how.commit();
      await takeCopy(this.disksDir, uuid);
      return result;
    } catch (error) {
      // The copy stays while the store is unreachable: the next daemon asks again.
      if (!(await how.isThere(uuid))) await dropCopy(this.disksDir, uuid);
      throw error;
    }
  }

  /**
   * Returns the UUIDs of the instances whose copy or arrival was interrupted, including arrivals
   * that still run.
   */
  async listCopies(): Promise<readonly string[]> {
    return (await listCopies(this.disksDir)).filter((uuid) => !this.#copying.has(uuid));
  }

  /**
   * Ends an interrupted copy or move: the instance gets it, or it is removed. A running copy stays,
   * and so does a copy with an owner that the store cannot name. Does nothing without a copy.
   */
  async settleCopy(uuid: string, isThere: (uuid: string) => Promise<boolean>): Promise<void> {
    if (this.#copying.has(uuid)) return;
    if (await isThere(uuid)) await takeLeftCopy(this.disksDir, uuid);
    else await dropCopy(this.disksDir, uuid);
  }

  async #requireShared(): Promise<string> {
    const folder = await this.#shared.require();
    const [outer, inner] = await Promise.all([realpath(this.disksDir), realpath(folder)]);
    if (inner !== outer && !inner.startsWith(`${outer}/`)) return folder;
    const message = `the shared folder ${folder} lies inside ${this.disksDir}`;
    throw new AppError('HOST_PREREQUISITE', message, {
      details: { path: folder },
      hint: 'Name a folder outside of it: gnt-cluster modify --shared-file-storage-dir DIR',
    });
  }

  async #attach({ uuid, diskTemplate }: NewFolder): Promise<void> {
    if (diskTemplate !== 'sharedfile') return;
    await attachShared(await this.#requireShared(), uuid, this.dirOf({ uuid }));
  }

  async #bringBackMissing(uuid: string): Promise<void> {
    // A link counts, whatever its target.
    const isThere = await lstat(this.dirOf({ uuid })).then(
      () => true,
      (error: unknown) => systemCodeOf(error) !== 'ENOENT',
    );
    if (!isThere) await this.#bringBack(uuid);
  }
}

async function freeBytesOf(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir);
  return bavail * bsize;
}

function tooFull(message: string): AppError {
  return new AppError('DISK_SPACE', message, {
    hint: 'Remove instances or images that are not needed, or enlarge the file system.',
  });
}
