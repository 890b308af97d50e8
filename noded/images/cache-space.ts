import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { CacheIndex } from './cache-index.ts';

/** Left for the rest of the machine: a root file system that is full stops more than installs. */
const RESERVE_BYTES = 64 * 1024 * 1024;
const PARTIAL = /^partial-[0-9a-f]{64}$/;

export interface SpaceOptions {
  readonly dir: string;
  readonly index: CacheIndex;
  /** Contents and partial files that must stay. */
  readonly isInUse: (name: string) => boolean;
}

export function contentName(sha256: string): string {
  return `sha256-${sha256}`;
}

export function partialName(key: string): string {
  return `partial-${key}`;
}

/** Drops unused images, least recently used first, until those that stay have at most `maxBytes`. */
export async function evictTo(maxBytes: number, options: SpaceOptions): Promise<number> {
  const { dir, index, isInUse } = options;
  let sizeBytes = totalSize(index);
  let freed = 0;
  const oldestFirst = Object.entries(index.contents).sort(
    ([, a], [, b]) => a.lastUsedMs - b.lastUsedMs,
  );
  for (const [sha256, content] of oldestFirst) {
    if (sizeBytes <= maxBytes) break;
    if (isInUse(contentName(sha256))) continue;
    await forget(dir, index, sha256);
    sizeBytes -= content.sizeBytes;
    freed += content.sizeBytes;
  }
  return freed;
}

/** Removes one content and what points to it. */
export async function forget(dir: string, index: CacheIndex, sha256: string): Promise<void> {
  // First the index: what it does not name is not used.
  delete index.contents[sha256];
  for (const [key, location] of Object.entries(index.locations)) {
    if (location.sha256 === sha256) delete index.locations[key];
  }
  await rm(join(dir, contentName(sha256)), { force: true });
}

/**
 * Makes sure that so many bytes can be written, at the cost of unused partial files and images.
 * @throws AppError DISK_SPACE with both sizes
 */
export async function ensureSpace(neededBytes: number, options: SpaceOptions): Promise<void> {
  const missing = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(options.dir);
    return neededBytes + RESERVE_BYTES - bavail * bsize;
  };
  if ((await missing()) <= 0) return;
  await removePartials(options.dir, options.isInUse);
  const stillMissing = await missing();
  if (stillMissing <= 0) return;
  await evictTo(Math.max(0, totalSize(options.index) - stillMissing), options);
  const lacking = await missing();
  if (lacking <= 0) return;
  throw new AppError(
    'DISK_SPACE',
    `the image needs ${neededBytes} bytes in ${options.dir}, where ${Math.max(0, neededBytes - lacking)} are free`,
    {
      details: { dir: options.dir, neededBytes, lackingBytes: lacking },
      hint: `free ${Math.ceil(lacking / 1024 / 1024)} MiB there`,
    },
  );
}

/** Leftovers of downloads that nobody continues. */
export async function removePartials(
  dir: string,
  isInUse: (name: string) => boolean,
  olderThanMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!PARTIAL.test(name) || isInUse(name)) continue;
    const path = join(dir, name);
    if (Number.isFinite(olderThanMs) && (await mtimeOf(path)) > olderThanMs) continue;
    await rm(path, { force: true });
    await rm(`${path}.json`, { force: true });
  }
}

async function mtimeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}

export function totalSize(index: CacheIndex): number {
  return Object.values(index.contents).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
