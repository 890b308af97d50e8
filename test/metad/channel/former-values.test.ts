import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLatest } from '../../../metad/channel/former-values.ts';

const LONGEST = 65_536;
const named = (index: number, length: number): string => `${index} `.padEnd(length, 'x');

test('the most recently changed values are kept, each once, in their order', () => {
  assert.deepEqual(keepLatest(['a', 'b', 'a']), ['b', 'a']);
  const many = Array.from({ length: 300 }, (_, index) => String(index));
  assert.deepEqual(keepLatest(many), many.slice(-256));
});

test('the kept values are shorter than 8 MiB in JSON, for values of any length', () => {
  const long = Array.from({ length: 256 }, (_, index) => named(index, LONGEST));
  assert.deepEqual(keepLatest(long), long.slice(-16));
  const worst = Array.from({ length: 256 }, (_, index) =>
    named(index, 16).padEnd(LONGEST, '\u0001'),
  );
  assert.ok(JSON.stringify(keepLatest(worst)).length < 8 * 1024 * 1024);
});

test('the latest value is kept even when it alone is too long', () => {
  assert.deepEqual(
    keepLatest(['a', named(1, 2 ** 21)]).map(({ length }) => length),
    [2 ** 21],
  );
});
