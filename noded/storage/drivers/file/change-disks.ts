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
 * A disk on its way out, called by its number and its UUID. Whether it is gone is said by the
 * record: while that has the UUID, the file gets its old name back; afterwards those behind it move
 * up, and it goes last of all. So a kill at any moment leaves what can be ended.
 */
const LEAVING = /^disk(\d+)\.leaving-([0-9a-f-]{36})\.raw$/;

function leavingPath(dir: string, index: number, uuid: string): string {
  return join(dir, `disk${index}.leaving-${uuid}.raw`);
}

/**
 * Makes the files be what a record is going to say, around the commit that says it.
 * @param change all files of `before` are there; `after` has some more at its end, or lacks one
 * @throws AppError DISK_IN_USE, DISK_FULL, CONFLICT: there is a file with data under a new name
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
 * A machine that runs keeps the disks that it has: files that are new concern nobody. One that no
 * record came to know is empty, and is that of whoever is next to have its name.
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
 * What an addition leaves that was interrupted is nothing but a hole. A file with data is a disk
 * that the store knew, and forgot: it lost its last commits, or comes from a backup.
 */
function refuseData(path: string, fd: number): void {
  if (findData(fd, 0) === null) return;
  throw new AppError('CONFLICT', `${path} exists and holds data, but no record names it`, {
    details: { path },
    hint: 'It may be a disk that the store lost. Inspect it, move it away, and add the disk again.',
  });
}

/** A commit whose answer was lost counts: `settleLeaving` asks the record. */
async function removeDisk<Result>(
  dir: string,
  { before, after }: Change,
  removed: number,
  commit: () => Promise<Result>,
): Promise<Result> {
  // With the last one the others stay as they are, and a machine may have them.
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
 * Ends what a kill, or a store that was away, interrupted. Idempotent.
 * @param disks those of the record
 * @returns names of the files that were dealt with
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

/** All disks were there when one of them left, so there is at most this one gap. */
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
