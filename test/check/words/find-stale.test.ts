import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findStale } from './find-stale.ts';

test('changed, missing and left-over files are found', () => {
  const contents = new Map([
    ['docs/reference/a.md', 'old'],
    ['docs/reference/b.md', 'same'],
    ['docs/reference/gone.md', ''],
    ['docs/other.md', ''],
  ]);
  const generated = new Map([
    ['a.md', 'new'],
    ['b.md', 'same'],
    ['c.md', 'new'],
  ]);
  assert.deepEqual(
    findStale(contents, generated).map((line) => line.split(':')[0]),
    ['docs/reference/a.md', 'docs/reference/c.md', 'docs/reference/gone.md'],
  );
});
