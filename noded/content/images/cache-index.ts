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
  /** The file's time in the cache, which shows later changes. */
  mtimeMs: z.number(),
  sha512: z.string().nullable(),
  lastUsedMs: z.number(),
});
const location = z.object({
  /** The URL without credentials, for messages. */
  url: z.string(),
  sha256: sha256Hex,
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
});
const indexFile = z.object({
  schema: z.literal(1),
  contents: z.record(sha256Hex, content),
  /** Origins of the contents, by `keyOfUrl`. */
  locations: z.record(sha256Hex, location),
});

export type CacheIndex = z.infer<typeof indexFile>;

export const INDEX_NAME = 'index.json';

/**
 * Returns a digest of the URL with its credentials: other logins may see another file, and so may
 * the operator and a user of the remote API.
 */
export function keyOfUrl(url: URL): string {
  const bare = new URL(url);
  if (!isMarkedRemote(bare)) bare.hash = '';
  return createHash('sha256').update(bare.href).digest('hex');
}

/**
 * Loads the index. A damaged or incompatible one is replaced by an empty one: the cache can be
 * filled again.
 */
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

export async function saveIndex(dir: string, index: CacheIndex): Promise<void> {
  await writeDurably(join(dir, INDEX_NAME), JSON.stringify(index), { mode: 0o600 });
}
