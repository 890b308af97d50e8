import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import type { CacheIndex } from './cache-index.ts';

/** Free space for the rest of the system. A full file system stops running guests too. */
const RESERVE = { share: 0.05, minBytes: 64 * MIB, maxBytes: 2 * GIB };
const CONTENT = /^sha256-([0-9a-f]{64})$/;
const PARTIAL = /^partial-[0-9a-f]{64}$/;
/** Partial downloads are kept for resumption; even small ones are files. */
const MAX_PARTIALS = 64;
/** Abandons partial downloads that were not resumed within a week. */
const PARTIAL_LIFETIME_MS = 7 * 24 * 3600 * 1000;
/** Room that is made in the cache ahead of a download. */
const AHEAD_BYTES = 16 * MIB;

export interface SpaceOptions {
  readonly dir: string;
  readonly index: CacheIndex;
  readonly isInUse: (name: string) => boolean;
  readonly maxBytes: number;
  readonly nowMs: number;
}

export function contentName(sha256: string): string {
  return `sha256-${sha256}`;
}

export function partialName(key: string): string {
  return `partial-${key}`;
}

/**
 * Removes unused files until the rest has at most `maxBytes`: first partial files, oldest first,
 * then images, least recently used first. Removes partial files that are too old or too many in any
 * case.
 * @returns the number of freed bytes
 */
export async function evictTo(maxBytes: number, options: SpaceOptions): Promise<number> {
  const { dir, index, isInUse, nowMs } = options;
  const partials = await listPartials(dir);
  const before = totalSize(index) + sizeOf(partials);
  let sizeBytes = before;
  let count = partials.length;
  for (const { name, sizeBytes: size, mtimeMs } of partials) {
    const mayStay =
      sizeBytes <= maxBytes && count <= MAX_PARTIALS && nowMs - mtimeMs <= PARTIAL_LIFETIME_MS;
    if (mayStay || isInUse(name)) continue;
    await removePartial(dir, name);
    sizeBytes -= size;
    count -= 1;
  }
  const oldestFirst = Object.entries(index.contents).sort(
    ([, a], [, b]) => a.lastUsedMs - b.lastUsedMs,
  );
  for (const [sha256, content] of oldestFirst) {
    if (sizeBytes <= maxBytes) break;
    if (isInUse(contentName(sha256))) continue;
    await forget(dir, index, sha256);
    sizeBytes -= content.sizeBytes;
  }
  return before - sizeBytes;
}

/**
 * Adds contents that the index does not name, after damage or a crash between two writes. They
 * count and can be evicted. Their bytes are verified before they are used.
 */
export async function takeUnlisted(dir: string, index: CacheIndex): Promise<void> {
  for (const name of await readdir(dir)) {
    const sha256 = CONTENT.exec(name)?.[1];
    if (sha256 === undefined || ownValue(index.contents, sha256) !== undefined) continue;
    const found = await statOrNull(join(dir, name));
    if (found === null) continue;
    const { size: sizeBytes, mtimeMs: lastUsedMs } = found;
    // No file has this time, so that the first use verifies the bytes.
    setOwn(index.contents, sha256, { sizeBytes, mtimeMs: -1, sha512: null, lastUsedMs });
  }
}

export async function forget(dir: string, index: CacheIndex, sha256: string): Promise<void> {
  // The index first: contents outside the index are not used.
  delete index.contents[sha256];
  for (const [key, location] of Object.entries(index.locations)) {
    if (location.sha256 === sha256) delete index.locations[key];
  }
  await rm(join(dir, contentName(sha256)), { force: true });
}

/**
 * Whether so many bytes can be written within the limit of the cache and without touching the
 * reserve.
 */
export async function hasSpace(neededBytes: number, options: SpaceOptions): Promise<boolean> {
  if ((await lackingBytes(neededBytes, options.dir)) > 0) return false;
  const ahead = Math.min(neededBytes, AHEAD_BYTES);
  return (await usedBytes(options.dir, options.index)) + ahead <= options.maxBytes;
}

/**
 * Makes room for so many bytes by removing unused partial files and images.
 * @throws AppError DISK_SPACE with both sizes
 */
export async function ensureSpace(neededBytes: number, options: SpaceOptions): Promise<void> {
  const { dir, index, maxBytes } = options;
  await evictTo(Math.max(0, maxBytes - Math.min(neededBytes, AHEAD_BYTES)), options);
  const missing = await lackingBytes(neededBytes, dir);
  if (missing <= 0) return;
  await evictTo(Math.max(0, (await usedBytes(dir, index)) - missing), options);
  const lacking = await lackingBytes(neededBytes, dir);
  if (lacking <= 0) return;
  throw new AppError(
    'DISK_SPACE',
    `the image needs ${neededBytes} bytes in ${dir}, ${Math.max(0, neededBytes - lacking)} are free`,
    {
      details: { dir, neededBytes, lackingBytes: lacking },
      hint: `Free ${Math.ceil(lacking / 1024 / 1024)} MiB there.`,
    },
  );
}

/** Returns the number of missing bytes; zero or less when there is room. */
async function lackingBytes(neededBytes: number, dir: string): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(dir);
  const share = blocks * bsize * RESERVE.share;
  const reserve = Math.min(RESERVE.maxBytes, Math.max(RESERVE.minBytes, share));
  return Math.ceil(neededBytes + reserve - bavail * bsize);
}

interface Partial {
  readonly name: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

/** Lists partial downloads, running ones included, the oldest first. */
async function listPartials(dir: string): Promise<readonly Partial[]> {
  const names = (await readdir(dir)).filter((name) => PARTIAL.test(name));
  const found = await Promise.all(
    names.map(async (name): Promise<Partial | null> => {
      const about = await statOrNull(join(dir, name));
      return about && { name, sizeBytes: about.size, mtimeMs: about.mtimeMs };
    }),
  );
  return found.filter((partial) => partial !== null).sort((a, b) => a.mtimeMs - b.mtimeMs);
}

async function removePartial(dir: string, name: string): Promise<void> {
  await rm(join(dir, name), { force: true });
  await rm(join(dir, `${name}.json`), { force: true });
}

async function statOrNull(path: string): Promise<{ size: number; mtimeMs: number } | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

export async function usedBytes(dir: string, index: CacheIndex): Promise<number> {
  return totalSize(index) + sizeOf(await listPartials(dir));
}

function sizeOf(files: readonly Partial[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function totalSize(index: CacheIndex): number {
  return Object.values(index.contents).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
