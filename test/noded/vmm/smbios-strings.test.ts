import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeSmbiosStrings } from '../../../noded/vmm/launch-qemu.ts';

test('strings of any length are concatenated, and an empty string ends the list', () => {
  const long = 'x'.repeat(40_000);
  const bytes = encodeSmbiosStrings(['a=ü', long]);
  assert.deepEqual([...bytes.subarray(0, 5)], [11, 5, 0x00, 0x0e, 2]);
  assert.equal(bytes.subarray(5).toString(), `a=ü\0${long}\0\0`);
});

test('an empty list is two zeros', () => {
  assert.deepEqual([...encodeSmbiosStrings([])], [11, 5, 0x00, 0x0e, 0, 0, 0]);
});

test('an empty string, a string with NUL and a list of 256 strings are refused', () => {
  for (const strings of [['a', ''], ['a\0b'], Array.from({ length: 256 }, () => 'a')])
    assert.throws(() => encodeSmbiosStrings(strings), RangeError);
});
