import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHostKeys } from '../../../metad/http/actions.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const pair = `pub_key_ed25519=${encodeURIComponent(KEY)}`;

test('host keys after the 64th pair are ignored', () => {
  const read = (before: number): unknown =>
    readHostKeys(Buffer.from('pub_key_=a&'.repeat(before) + pair));
  assert.deepEqual(read(63), { keys: [KEY], user: null });
  assert.equal(read(64), null);
  assert.equal(read(1400), null);
});
