import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256Hex } from '#shared/contract/primitives.ts';
import { messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { isMarkedRemote } from '../downloads/transfer/remote-hosts.ts';
import type { Logger } from '#shared/log/log.ts';

const content = z.object({
  sizeBytes: z.number().int().nonnegative(),
  /** Time of the file in the cache, to notice that it was touched. */
  mtimeMs: z.number(),
  sha512: z.string().nullable(),
  lastUsedMs: z.number(),
});
const location = z.object({
  /** The URL without credentials, to show to people. */
  url: z.string(),
  sha256: sha256Hex,
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
});
const indexFile = z.object({
  schema: z.literal(1),
  /** What is in the cache, by the SHA-256 of the content. */
  contents: z.record(sha256Hex, content),
  /** Where contents came from, by `keyOfUrl`. */
  locations: z.record(sha256Hex, location),
});

export type CacheIndex = z.infer<typeof indexFile>;

export const INDEX_NAME = 'index.json';

/**
 * A digest of the whole URL with its credentials: two logins may see two files, and so may the
 * operator and a user of the remote API.
 */
export function keyOfUrl(url: URL): string {
  const bare = new URL(url);
  if (!isMarkedRemote(bare)) bare.hash = '';
  return createHash('sha256').update(bare.href).digest('hex');
}

/** What was damaged or is of another time is forgotten: the cache can be filled again. */
export async function loadIndex(dir: string, logger: Logger): Promise<CacheIndex> {
  try {
    return indexFile.parse(JSON.parse(await readFile(join(dir, INDEX_NAME), 'utf8')));
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') {
      logger.warn('images.index-unusable', { reason: messageOf(error).slice(0, 500) });
    }
    return { schema: 1, contents: {}, locations: {} };
  }
}

/** Writes the index, whole or not at all. */
export async function saveIndex(dir: string, index: CacheIndex): Promise<void> {
  await writeDurably(join(dir, INDEX_NAME), JSON.stringify(index), { mode: 0o600 });
}
