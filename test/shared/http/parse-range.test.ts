import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from '#shared/http/parse-range.ts';

test('one byte range is understood in each of its forms', () => {
  assert.deepEqual(parseRange('bytes=0-0', 10), [0, 0]);
  assert.deepEqual(parseRange('bytes=3-', 10), [3, 9]);
  assert.deepEqual(parseRange('bytes=3-99', 10), [3, 9]);
  assert.deepEqual(parseRange('bytes=-4', 10), [6, 9]);
  assert.deepEqual(parseRange('bytes=-40', 10), [0, 9]);
});

test('a range beyond the end cannot be satisfied', () => {
  for (const header of ['bytes=10-', 'bytes=10-12', 'bytes=-0']) {
    assert.equal(parseRange(header, 10), 'unsatisfiable', header);
  }
  assert.equal(parseRange('bytes=0-', 0), 'unsatisfiable');
});

test('what is no single byte range asks for the whole', () => {
  for (const header of [
    undefined,
    '',
    'bytes=',
    'bytes=-',
    'bytes=5-3',
    'bytes=0-1,3-4',
    'items=0-1',
    'bytes=a-b',
    'bytes=0-1x',
  ]) {
    assert.equal(parseRange(header, 10), undefined, String(header));
  }
});
