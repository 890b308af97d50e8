import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const HALF = '.half-';

export interface DurableOptions {
  readonly mode: number;
  /** Fails with EEXIST when the file exists. */
  readonly isNew?: boolean;
}

/**
 * Writes a file that survives crashes and power failures whole or not at all. Its bytes are on the
 * disk before it gets its name, and the name is on the disk when this resolves. A killed process
 * leaves a half file of another name: {@link removeHalves}.
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

export function isHalf(name: string): boolean {
  return name.includes(HALF);
}

/**
 * Removes half files of killed processes. Call it at the start of the only program that writes
 * these files.
 */
export async function removeHalves(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const names = await readdir(dirname(path)).catch(() => []);
    for (const name of names.filter((one) => one.startsWith(`${basename(path)}${HALF}`)))
      await rm(join(dirname(path), name), { force: true });
  }
}

/**
 * Makes a directory and its parents, and waits until their names are on the disk. Also syncs an
 * existing directory, whose maker may have been killed before.
 */
export async function makeDirectoryDurably(path: string, mode: number): Promise<void> {
  const first = (await mkdir(path, { recursive: true, mode })) ?? path;
  for (let made = path; ; made = dirname(made)) {
    await syncPath(dirname(made));
    if (made === first) return;
  }
}

/** Waits until a file's content, or a directory's names (not its files), are on the disk. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

export async function syncFlatDirectory(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await syncPath(join(directory, name));
  await syncPath(directory);
}
