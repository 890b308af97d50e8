import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { findTestFiles } from './groups.ts';
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

test('a machine that has run nothing yet begins with what is usually longest, which is there', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-durations-'));
  t.after(() => rm(directory, { recursive: true }));
  const text = await readFile(join(import.meta.dirname, 'usual-durations.json'), 'utf8');
  const usual = Object.entries(z.record(z.string(), z.number()).parse(JSON.parse(text)));
  const there = new Set(Object.values(findTestFiles(join(import.meta.dirname, '../..'))).flat());
  assert.deepEqual(
    usual.flatMap(([file]) => (there.has(file) ? [] : [file])),
    [],
  );
  const files = usual.toSorted(([, a], [, b]) => a - b).map(([file]) => file);
  const [first, last] = [files.at(-1), files[0]];
  const sorted = (await openDurations(directory)).slowestFirst(files);
  assert.deepEqual([sorted[0], sorted.at(-1)], [first, last]);
});
