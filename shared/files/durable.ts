import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const HALF = '.half-';

export interface DurableOptions {
  readonly mode: number;
  /** Refuses with EEXIST where there is a file of that name already. */
  readonly isNew?: boolean;
}

/**
 * A file that is there whole or not at all, whenever this process or the machine's power goes: its
 * bytes are on the disk before it has its name, and the name is on the disk when this resolves.
 * Half a file, of a process that was killed, has a name of its own: {@link removeHalves}.
 */
export async function writeDurably(
  path: string,
  data: string | Uint8Array,
  { mode, isNew = false }: DurableOptions,
): Promise<void> {
  const half = `${path}${HALF}${randomUUID()}`;
  try {
    await using file = await open(half, 'wx', mode);
    await file.writeFile(data);
    await file.sync();
    if (isNew) await link(half, path);
    else await rename(half, path);
  } finally {
    await rm(half, { force: true });
  }
  await syncPath(dirname(path));
}

/** Whether a file is called as one that {@link writeDurably} did not finish. */
export function isHalf(name: string): boolean {
  return name.includes(HALF);
}

/**
 * Removes what processes that were killed while they wrote these files have left. For who starts,
 * and is the only one that writes them.
 */
export async function removeHalves(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const names = await readdir(dirname(path)).catch(() => []);
    for (const name of names.filter((one) => one.startsWith(`${basename(path)}${HALF}`)))
      await rm(join(dirname(path), name), { force: true });
  }
}

/**
 * Makes a directory, with those above it, and waits until their names are on the disk. Also that of
 * one that is there: who made it may have been killed before it was.
 */
export async function makeDirectoryDurably(path: string, mode: number): Promise<void> {
  const first = (await mkdir(path, { recursive: true, mode })) ?? path;
  for (let made = path; ; made = dirname(made)) {
    await syncPath(dirname(made));
    if (made === first) return;
  }
}

/**
 * Waits until what a file or a directory holds is on the disk; of a directory that is the names in
 * it, not the files.
 */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/** Waits until all the files of a flat directory, and their names, are on the disk. */
export async function syncFlatDirectory(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await syncPath(join(directory, name));
  await syncPath(directory);
}
