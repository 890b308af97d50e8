import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import type { CopyWatch } from './copy-disks.ts';
import { listNames } from './install-disks.ts';

export type Snapshots = InstanceRecord['snapshots'];
type Known = Pick<InstanceRecord, 'uuid' | 'diskTemplate'>;

/** Prefix of snapshot folders, finished or not. */
export const SNAPSHOT_PREFIX = 'snapshot';

/**
 * A snapshot that is being taken or removed. After an interruption the record decides: a snapshot
 * on record gets its final name, any other is removed. A finished snapshot without a record stays:
 * the store may have lost the record.
 */
const UNFINISHED = /^snapshotting-([0-9a-f-]{36})$/;

export function unfinishedDir(dir: string, uuid: string): string {
  return join(dir, `snapshotting-${uuid}`);
}

export function snapshotDir(dir: string, uuid: string): string {
  return join(dir, `snapshot-${uuid}`);
}

/** The QEMU process that has the disks open. */
export interface PausableMachine {
  isRunning(): boolean;
  /** Resolves when all writes of the guest are in the files. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

export interface TakeSnapshot extends CopyWatch {
  /** Whether to copy disks if blocks cannot be shared. A running guest is paused for as long. */
  readonly mayCopy: boolean;
  /** Undefined for a stopped instance, whose disks must be unused. */
  readonly machine: PausableMachine | undefined;
  readonly commit: () => Promise<unknown>;
}

export interface RestoreSnapshot extends CopyWatch {
  /** Names the restoration in the record. */
  readonly restoreId: string;
  readonly commit: () => Promise<unknown>;
}

/** Takes and restores states of an instance's disks, with which a snapshot shares blocks. */
export interface SnapshotVerbs {
  /**
   * Refuses disks that cannot have a snapshot.
   * @param mayCopy as in TakeSnapshot
   * @throws AppError NOT_SUPPORTED, DISK_MISSING, DISK_SPACE
   */
  check(instance: InstanceRecord, mayCopy: boolean): Promise<void>;
  /**
   * Takes a snapshot of all disks at one moment, while a running guest is paused.
   * @returns the pause in milliseconds
   * @throws AppError DISK_IN_USE, DISK_FULL, NOT_SUPPORTED, QMP
   */
  take(
    instance: InstanceRecord,
    uuid: string,
    how: TakeSnapshot,
  ): Promise<{ readonly stillMs: number }>;
  /**
   * Refuses a restoration without room for the disks of the snapshot beside the present ones.
   * @throws AppError DISK_SPACE, DISK_MISSING
   */
  checkRestore(instance: InstanceRecord, snapshot: Snapshots[number]): Promise<void>;
  /**
   * Replaces the disks by those of the snapshot once `commit` has put `restoreId` into the record.
   * Until then they are untouched. The snapshot stays.
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_FULL
   */
  restore(
    instance: InstanceRecord,
    snapshot: Snapshots[number],
    how: RestoreSnapshot,
  ): Promise<void>;
  /** @param commit removes the snapshot from the record */
  remove(instance: Known, uuid: string, commit: () => Promise<unknown>): Promise<void>;
  /**
   * Lists finished snapshots that the record does not name: folders as `UUID/snapshot-UUID`,
   * volumes as `GROUP/NAME`.
   */
  listForgotten(instance: Known & Pick<InstanceRecord, 'snapshots'>): Promise<readonly string[]>;
}

export interface SnapshotDisks extends SnapshotVerbs {
  /** Returns true if a snapshot was interrupted, so that the guest may still be paused. */
  isUnfinished(uuid: string): Promise<boolean>;
}

/** Returns the UUIDs of the interrupted snapshots in an instance's folder. */
export async function listUnfinished(dir: string): Promise<readonly string[]> {
  return (await listNames(dir)).flatMap((name) => UNFINISHED.exec(name)?.[1] ?? []);
}

/**
 * Ends interrupted snapshots. Idempotent.
 * @param snapshots of the record
 * @returns names of the folders that it renamed or removed
 */
export async function settleSnapshots(
  dir: string,
  snapshots: Snapshots,
): Promise<readonly string[]> {
  const unfinished = await listUnfinished(dir);
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

/** Makes the folder that exists while the guest is paused: see isUnfinished. */
export async function beginSnapshot(dir: string, uuid: string): Promise<string> {
  const unfinished = unfinishedDir(dir, uuid);
  await mkdir(unfinished, { mode: 0o700 });
  return unfinished;
}

/** The guest may still be paused: QEMU did not confirm that it resumed. */
export class StandsStill extends AppError {}

/**
 * Does work while the guest is paused.
 * @returns the pause in milliseconds
 */
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
    await resume(machine);
  }
  return performance.now() - fromMs;
}

/** Resumes even after a failed pause, which QEMU may have carried out all the same. */
async function resume(machine: PausableMachine): Promise<void> {
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
