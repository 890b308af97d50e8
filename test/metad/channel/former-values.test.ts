import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLatest } from '../../../metad/channel/former-values.ts';

const LONGEST = 65_536;
const named = (index: number, length: number): string => `${index} `.padEnd(length, 'x');

test('the values that were changed last are kept, each once, in their order', () => {
  assert.deepEqual(keepLatest(['a', 'b', 'a']), ['b', 'a']);
  const many = Array.from({ length: 300 }, (_, index) => String(index));
  assert.deepEqual(keepLatest(many), many.slice(-256));
});

test('however long values are, those that are kept fit into what goes to another node', () => {
  const long = Array.from({ length: 256 }, (_, index) => named(index, LONGEST));
  assert.deepEqual(keepLatest(long), long.slice(-16));
  const worst = Array.from({ length: 256 }, (_, index) =>
    named(index, 16).padEnd(LONGEST, '\u0001'),
  );
  assert.ok(JSON.stringify(keepLatest(worst)).length < 8 * 1024 * 1024);
});

test('the last one is kept though it alone is too long', () => {
  assert.deepEqual(
    keepLatest(['a', named(1, 2 ** 21)]).map(({ length }) => length),
    [2 ** 21],
  );
});
