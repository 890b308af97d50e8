import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeValue } from '#shared/store/encode.ts';
import { MIB } from '#shared/units/bytes.ts';

test('text longer than any value that is written is not parsed', () => {
  const large = `"${'a'.repeat(32 * MIB)}"`;
  assert.throws(() => decodeValue('instances', 'x', large), {
    code: 'RECORD_UNREADABLE',
    message: /instances\/x: it is too large/,
  });
  // 16 MiB, sealed.
  const sealed = 'a'.repeat(22 * MIB);
  assert.equal(decodeValue('instances', 'x', `"${sealed}"`), sealed);
});
