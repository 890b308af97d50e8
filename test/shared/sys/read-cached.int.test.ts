import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { dropCached } from '#shared/sys/files.ts';
import { readsOfCache } from '#shared/sys/read-cached.ts';

const SIZE = 1024 * 1024;
/** `EXT4_SUPER_MAGIC`, statfs(2): a file system that reports its cache, and can drop it. */
const EXT4_MAGIC = 0xef53;

test('reads what memory has of a file, and of what it has not, nothing', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-cached-'));
  t.after(() => rm(directory, { recursive: true }));
  if ((await statfs(directory)).type !== EXT4_MAGIC) return t.skip('not on ext4');
  const content = randomBytes(SIZE);
  await writeFile(join(directory, 'file'), content);
  await using handle = await open(join(directory, 'file'));
  const buffer = Buffer.allocUnsafeSlow(SIZE);
  const read = readsOfCache(handle.fd, buffer);
  assert.equal(read(0, SIZE), SIZE);
  assert.ok(buffer.equals(content));
  assert.equal(read(SIZE - 10, 100), 10);
  assert.ok(buffer.subarray(0, 10).equals(content.subarray(SIZE - 10)));
  assert.equal(read(SIZE, 10), 0);
  assert.throws(() => read(0, SIZE + 1), RangeError);
  await handle.sync();
  dropCached(handle.fd);
  assert.equal(read(0, SIZE), 0);
});
