import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPassedKeys } from './passed-keys.ts';

test('what has passed is known to the next run, and the oldest is forgotten first', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-passed-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'new', 'eslint');
  const first = await openPassedKeys(path);
  assert.equal(first.has('a'), false);
  await first.add(['a', 'b']);
  const second = await openPassedKeys(path);
  assert.deepEqual(
    ['a', 'b', 'c', ''].map((key) => second.has(key)),
    [true, true, false, false],
  );
  await second.add(Array.from({ length: 29_999 }, (_, number) => `${number}`));
  const third = await openPassedKeys(path);
  assert.deepEqual(
    ['a', 'b', '0', '29998'].map((key) => third.has(key)),
    [true, false, true, true],
  );
});
