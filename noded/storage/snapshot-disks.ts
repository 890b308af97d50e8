import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { shareBlocks } from '../host/share-blocks.ts';
import { copyFiles, type CopyWatch, sharesBlocks, takenTogether } from './copy-disks.ts';
import { holdImages } from './hold-images.ts';
import type { InstanceDisks } from './instance-disks.ts';
import { diskPath, listNames, settleDisks, successorPath } from './install-disks.ts';

type Snapshots = InstanceRecord['snapshots'];

/** How the folder of a snapshot begins, finished or not. */
export const SNAPSHOT_PREFIX = 'snapshot';

/**
 * A snapshot that is on its way in or out. The record says which: one that it names gets its name,
 * any other one is removed, whenever a daemon or the power went. A finished one that no record
 * names is left alone: the store may have lost it.
 */
const UNFINISHED = /^snapshotting-([0-9a-f-]{36})$/;
const FINISHED = /^snapshot-([0-9a-f-]{36})$/;

function unfinishedDir(dir: string, uuid: string): string {
  return join(dir, `snapshotting-${uuid}`);
}

function snapshotDir(dir: string, uuid: string): string {
  return join(dir, `snapshot-${uuid}`);
}

/** The machine that has the disks. */
export interface PausableMachine {
  isRunning(): boolean;
  /** All that the guest has written is in the files when it resolves. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

type Known = Pick<InstanceRecord, 'uuid' | 'diskTemplate'>;

export interface TakeSnapshot extends CopyWatch {
  /**
   * Whether disks are copied where blocks cannot be shared, though a guest that runs stands still
   * for as long.
   */
  readonly mayCopy: boolean;
  /** The one that has the disks; undefined where none may have them. */
  readonly machine: PausableMachine | undefined;
  readonly commit: () => Promise<unknown>;
}

export interface RestoreSnapshot extends CopyWatch {
  /** Names the restoration in the record. */
  readonly restoreId: string;
  readonly commit: () => Promise<unknown>;
}

/**
 * Moments of an instance's disks, which share their blocks with them: below the instance's folder,
 * or in the thin pool of its volumes. Below the folder they are copies where blocks cannot be
 * shared.
 */
export interface SnapshotDisks {
  /**
   * Whether there can be one.
   * @param mayCopy as in TakeSnapshot
   * @throws AppError NOT_SUPPORTED, DISK_MISSING, DISK_SPACE
   */
  check(instance: InstanceRecord, mayCopy: boolean): Promise<void>;
  /**
   * All disks in the same moment, in which a guest that runs stands still.
   * @returns for how long the guest stood still
   * @throws AppError DISK_IN_USE, DISK_FULL, NOT_SUPPORTED, QMP
   */
  take(
    instance: InstanceRecord,
    uuid: string,
    how: TakeSnapshot,
  ): Promise<{ readonly stillMs: number }>;
  /**
   * Whether there is room for the disks of a snapshot beside the present ones.
   * @throws AppError DISK_SPACE, DISK_MISSING
   */
  checkRestore(instance: InstanceRecord, snapshot: Snapshots[number]): Promise<void>;
  /**
   * The disks are those of the snapshot as soon as the commit has put `restoreId` into the record,
   * and untouched until then. The snapshot stays.
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_FULL
   */
  restore(
    instance: InstanceRecord,
    snapshot: Snapshots[number],
    how: RestoreSnapshot,
  ): Promise<void>;
  /** @param commit takes it out of the record */
  remove(instance: Known, uuid: string, commit: () => Promise<unknown>): Promise<void>;
  /**
   * Folders, as `UUID/snapshot-UUID`, or volumes, as `GROUP/NAME`, of finished ones that the record
   * does not name.
   */
  listForgotten(instance: Known & Pick<InstanceRecord, 'snapshots'>): Promise<readonly string[]>;
  /** Whether one was being taken when a daemon ended: its guest may stand still since then. */
  isUnfinished(uuid: string): Promise<boolean>;
}

export function createSnapshotDisks(
  disksDir: string,
  disks: Pick<InstanceDisks, 'settle' | 'activate' | 'checkSpace' | 'reach' | 'requireRoom'>,
): SnapshotDisks {
  const dirOf = ({ uuid }: Pick<InstanceRecord, 'uuid'>): string => join(disksDir, uuid);
  // Of shared disks it is another file system, and only the instance's own folder may be written.
  const folderOf = (instance: InstanceRecord): string =>
    instance.diskTemplate === 'sharedfile' ? dirOf(instance) : disksDir;
  return {
    check: async (instance, mayCopy) => {
      await disks.settle(instance);
      const active = await disks.activate(instance);
      await disks.checkSpace(instance);
      const folder = folderOf(instance);
      if (await sharesBlocks(folder)) return;
      if (mayCopy)
        return disks.requireRoom(await takenTogether(active.map(({ path }) => path)), instance);
      throw sharesNone(folder);
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
        // One that could not be told to go on is told by the next daemon.
        if (!(error instanceof StandsStill)) await rm(unfinished, { recursive: true, force: true });
        throw tellFull(error, dir);
      }
      await commit();
      await rename(unfinished, snapshotDir(dir, uuid));
      await syncPath(dir);
      return { stillMs };
    },
    checkRestore: async (instance, snapshot) => {
      await disks.checkSpace(instance);
      if (await sharesBlocks(folderOf(instance))) return;
      const from = snapshotDir(dirOf(instance), snapshot.uuid);
      const paths = snapshot.disks.map((_, index) => diskPath(from, index));
      const taken = await takenTogether(paths).catch((error: unknown) => {
        throw systemCodeOf(error) === 'ENOENT' ? missing(snapshot.name, from, error) : error;
      });
      await disks.requireRoom(taken, instance);
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
        // Somebody removed it by hand: then there is nothing but the record to change.
        if (systemCodeOf(error) !== 'ENOENT') throw error;
      }
      await commit();
      await rm(unfinished, { recursive: true, force: true });
    },
    listForgotten: async ({ uuid, snapshots }) => {
      await disks.reach({ uuid });
      return (await listNames(dirOf({ uuid })))
        .filter((name) => {
          const [, found] = FINISHED.exec(name) ?? [];
          return found !== undefined && snapshots.every((one) => one.uuid !== found);
        })
        .map((name) => `${uuid}/${name}`);
    },
    isUnfinished: async (uuid) => {
      await disks.reach({ uuid });
      return (await listNames(dirOf({ uuid }))).some((name) => UNFINISHED.test(name));
    },
  };
}

/**
 * Ends what a kill, or a store that was away, interrupted. Idempotent.
 * @param snapshots those of the record
 * @returns names of the folders that were dealt with
 */
export async function settleSnapshots(
  dir: string,
  snapshots: Snapshots,
): Promise<readonly string[]> {
  const unfinished = (await listNames(dir)).flatMap((name) => UNFINISHED.exec(name)?.[1] ?? []);
  for (const uuid of unfinished) {
    const path = unfinishedDir(dir, uuid);
    if (snapshots.some((snapshot) => snapshot.uuid === uuid)) {
      await rename(path, snapshotDir(dir, uuid));
    } else {
      await rm(path, { recursive: true, force: true });
    }
  }
  if (unfinished.length > 0) await syncPath(dir);
  return unfinished.map((uuid) => `snapshotting-${uuid}`);
}

/** Makes what is there for as long as the guest stands still: see isUnfinished. */
export async function beginSnapshot(dir: string, uuid: string): Promise<string> {
  const unfinished = unfinishedDir(dir, uuid);
  await mkdir(unfinished, { mode: 0o700 });
  return unfinished;
}

/** The guest was stopped, and nobody could tell it to go on. */
export class StandsStill extends AppError {}

/** @returns milliseconds for which the guest stood still */
export async function whileStill(
  machine: PausableMachine | undefined,
  work: () => Promise<void>,
): Promise<number> {
  if (machine === undefined) {
    await work();
    return 0;
  }
  const fromMs = performance.now();
  try {
    await machine.pause();
    await work();
  } finally {
    await goOn(machine);
  }
  return performance.now() - fromMs;
}

/** Whatever became of the pause: one that was not heard of may have happened. */
async function goOn(machine: PausableMachine): Promise<void> {
  try {
    await machine.resume().catch(() => machine.resume());
  } catch (error) {
    if (!machine.isRunning()) return;
    throw new StandsStill(
      'QMP',
      'QEMU did not confirm that the guest resumed: it may still be paused',
      {
        hint: 'No snapshot was taken. QEMU resumes the guest when its pending work ends, mostly on a slow disk. If it does not: systemctl restart gnt-noded',
        cause: error,
      },
    );
  }
}

/**
 * @param watch of copies, where blocks cannot be shared; null: then it is refused
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
