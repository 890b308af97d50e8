import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  ImageCache,
  type ImageCacheOptions,
} from '../../../../noded/content/images/image-cache.ts';

export const content = randomBytes(300_000);
export const sha256 = createHash('sha256').update(content).digest('hex');
export const sha512 = createHash('sha512').update(content).digest('hex');
export const { signal } = new AbortController();
/** Removed when this process' tests have ended. */
export const directory = await mkdtemp(join(tmpdir(), 'gnt-images-'));
after(() => rm(directory, { recursive: true }));

export async function newCache(options: Partial<ImageCacheOptions> = {}) {
  const dir = options.dir ?? (await mkdtemp(join(directory, 'cache-')));
  const cache = new ImageCache({
    dir,
    maxBytes: 1e9,
    limits: async () => downloadLimitsOf({}),
    logger: silentLogger,
    clock: systemClock,
    retryDelayMs: 1,
    ...options,
  });
  const names = async () => (await readdir(dir)).sort();
  return { cache, dir, names };
}

export const fails = (code: ErrorCode, pattern: RegExp) => (error: unknown) => {
  assert.ok(isAppError(error), String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};
