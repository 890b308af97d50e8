import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDurations } from './known-durations.ts';

test('what is not known comes first, then what took longest; what failed tells nothing', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-durations-'));
  t.after(() => rm(directory, { recursive: true }));
  const passed = { report: '' };
  const first = await openDurations(directory);
  assert.deepEqual(first.slowestFirst(['b', 'a']), ['b', 'a']);
  await first.keep([
    { file: 'a', durationMs: 10, ...passed },
    { file: 'b', durationMs: 30, ...passed },
    { file: 'c', durationMs: 20, ...passed },
    { file: 'd', durationMs: 5, report: 'it failed' },
  ]);
  const second = await openDurations(directory);
  assert.deepEqual(second.slowestFirst(['a', 'b', 'c', 'd', 'e']), ['d', 'e', 'b', 'c', 'a']);
  await second.keep([{ file: 'a', durationMs: 40, ...passed }]);
  const third = await openDurations(directory);
  assert.deepEqual(third.slowestFirst(['b', 'a']), ['a', 'b']);
  await writeFile(join(directory, 'test-durations.json'), '{');
  assert.deepEqual((await openDurations(directory)).slowestFirst(['b', 'a']), ['b', 'a']);
});
