import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { findSecret } from '../../../scripts/demo/find-secret.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Places of a search; e2e/secret-canary.vm.test.ts plants a value in all others. */
let root: string;
const value = randomBytes(20).toString('hex');

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'gnt-find-'));
});
after(() => rm(root, { recursive: true }));

test('a value behind a hole is found, also across the border of two chunks', async () => {
  for (const border of [0, MIB, 3 * MIB]) {
    const path = join(root, `hole-${border}`);
    await using file = await open(path, 'w');
    await file.truncate(64 * MIB);
    // Chunks begin at data.
    await file.write(Buffer.alloc(border, 'x'), 0, border, 32 * MIB);
    await file.write(value, 32 * MIB + border - (border === 0 ? 0 : 10));
    assert.deepEqual(await findSecret(value, root, () => false), [path]);
    await rm(path);
  }
});

test('a deleted file with several open descriptors is reported once', async () => {
  const path = join(root, 'deleted');
  await using first = await open(path, 'w+');
  await using second = await open(path, 'r');
  await first.write(value);
  await rm(path);
  assert.deepEqual(await findSecret(value, root, () => false), [path]);
  assert.notEqual(first.fd, second.fd);
});

test('each of several values is found in one search', async () => {
  const other = randomBytes(20).toString('hex');
  for (const text of [value, other]) {
    const path = join(root, 'one');
    await using file = await open(path, 'w');
    await file.write(`It is ${text}.`);
    assert.deepEqual(await findSecret([value, other], root, () => false), [path]);
  }
});
