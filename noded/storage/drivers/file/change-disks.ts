import { lstat, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceDisk } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { findData } from '#shared/sys/files.ts';
import { holdImage, holdImages } from '../../hold-images.ts';
import { createSparseFile, diskPath, listNames } from '../../install-disks.ts';

type Disks = readonly Pick<InstanceDisk, 'uuid' | 'sizeBytes'>[];
interface Change {
  readonly before: Disks;
  readonly after: Disks;
}
interface Leaving {
  readonly name: string;
  readonly index: number;
  readonly uuid: string;
}

/**
 * A disk that is being removed, named by number and UUID. The record decides: if it has the UUID,
 * the file gets its name back. Otherwise the later disks move up and the file is removed last. A
 * kill at any moment therefore leaves a state that can be completed.
 */
const LEAVING = /^disk(\d+)\.leaving-([0-9a-f-]{36})\.raw$/;

function leavingPath(dir: string, index: number, uuid: string): string {
  return join(dir, `disk${index}.leaving-${uuid}.raw`);
}

/**
 * Makes the files match the record that `commit` writes.
 * @param change all files of `before` exist; `after` has more at its end, or lacks one
 * @throws AppError DISK_IN_USE, DISK_FULL; CONFLICT: a new file name already holds data
 */
export async function changeDiskFiles<Result>(
  dir: string,
  change: Change,
  commit: () => Promise<Result>,
): Promise<Result> {
  const { before, after } = change;
  const removed = before.findIndex(({ uuid }) => after.every((disk) => disk.uuid !== uuid));
  return removed === -1 ? addDisks(dir, change, commit) : removeDisk(dir, change, removed, commit);
}

/**
 * A running QEMU process keeps its disks, so new files do not disturb it. A new file without a
 * record is empty, and the next disk with its name reuses it.
 */
async function addDisks<Result>(
  dir: string,
  { before, after }: Change,
  commit: () => Promise<Result>,
): Promise<Result> {
  const added = [...after.entries()].slice(before.length);
  {
    await using undo = new AsyncDisposableStack();
    for (const [index, { sizeBytes }] of added) {
      const path = diskPath(dir, index);
      await using left = await holdImage(path);
      if (left !== undefined) refuseData(path, left.fd);
      undo.defer(() => rm(path, { force: true }));
      await createSparseFile(path, sizeBytes);
      await syncPath(path);
    }
    if (added.length > 0) await syncPath(dir);
    undo.move();
  }
  return commit();
}

/**
 * An interrupted addition leaves only holes. A file with data is a disk that the store lost, with
 * its last commits or because it was restored from a backup.
 */
function refuseData(path: string, fd: number): void {
  if (findData(fd, 0) === null) return;
  throw new AppError('CONFLICT', `${path} exists and holds data, but no record names it`, {
    details: { path },
    hint: 'It may be a disk that the store lost. Inspect it, move it away, and add the disk again.',
  });
}

/** A commit may have succeeded without an answer: `settleLeaving` asks the record. */
async function removeDisk<Result>(
  dir: string,
  { before, after }: Change,
  removed: number,
  commit: () => Promise<Result>,
): Promise<Result> {
  // If the last disk is removed, the others keep their names, and a QEMU process may have them
  // open.
  const isLast = removed === before.length - 1;
  await using held = await (isLast ? holdImage(diskPath(dir, removed)) : holdImages(dir));
  void held;
  const path = leavingPath(dir, removed, before[removed]?.uuid ?? '');
  await rename(diskPath(dir, removed), path);
  await syncPath(dir);
  const result = await commit();
  await endLeaving(dir, await listLeaving(dir), after);
  return result;
}

/**
 * Ends removals that a kill or an unreachable store interrupted. Idempotent.
 * @param disks those of the record
 * @returns names of the files that it changed
 * @throws AppError DISK_IN_USE
 */
export async function settleLeaving(dir: string, disks: Disks): Promise<readonly string[]> {
  const leaving = await listLeaving(dir);
  if (leaving.length === 0) return [];
  await using held = new AsyncDisposableStack();
  for (const { name, index, uuid } of leaving) {
    const isLast = index === disks.length - (disks.at(-1)?.uuid === uuid ? 1 : 0);
    const image = await (isLast ? holdImage(join(dir, name)) : holdImages(dir));
    if (image !== undefined) held.use(image);
  }
  await endLeaving(dir, leaving, disks);
  return leaving.map(({ name }) => name);
}

async function listLeaving(dir: string): Promise<readonly Leaving[]> {
  return (await listNames(dir)).flatMap((name) => {
    const [, index, uuid] = LEAVING.exec(name) ?? [];
    return index === undefined || uuid === undefined ? [] : [{ name, index: Number(index), uuid }];
  });
}

/** The caller holds the images. */
async function endLeaving(dir: string, leaving: readonly Leaving[], disks: Disks): Promise<void> {
  for (const { name, index, uuid } of leaving) {
    if (disks.some((disk) => disk.uuid === uuid)) {
      await rename(join(dir, name), diskPath(dir, index));
    } else {
      await closeGap(dir, index, disks.length);
      await syncPath(dir);
      await rm(join(dir, name), { force: true });
    }
  }
  await syncPath(dir);
}

/** All disks existed when the removal began, so there is at most one gap. */
async function closeGap(dir: string, gap: number, last: number): Promise<void> {
  for (let index = gap; index < last; index += 1) {
    const path = diskPath(dir, index);
    const next = diskPath(dir, index + 1);
    if (!(await isThere(path)) && (await isThere(next))) await rename(next, path);
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
