import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinHints } from '../../../noded/jobs/join-hints.ts';

test('two hints become two sentences with one full stop between them', () => {
  assert.equal(joinHints('Free space.', 'Try again.'), 'Free space. Try again.');
  assert.equal(joinHints('gnt-os list', 'Try again.'), 'gnt-os list. Try again.');
  assert.equal(joinHints(undefined, 'Try again.'), 'Try again.');
});
