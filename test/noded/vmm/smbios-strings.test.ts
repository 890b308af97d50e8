import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeSmbiosStrings } from '../../../noded/vmm/launch-qemu.ts';

test('strings of any length lie one after another, the end is an empty one', () => {
  const long = 'x'.repeat(40_000);
  const bytes = encodeSmbiosStrings(['a=ü', long]);
  assert.deepEqual([...bytes.subarray(0, 5)], [11, 5, 0x00, 0x0e, 2]);
  assert.equal(bytes.subarray(5).toString(), `a=ü\0${long}\0\0`);
});

test('no strings are two zeros, as of every structure without any', () => {
  assert.deepEqual([...encodeSmbiosStrings([])], [11, 5, 0x00, 0x0e, 0, 0, 0]);
});

test('a string that would end the list early, and one too many, are refused', () => {
  for (const strings of [['a', ''], ['a\0b'], Array.from({ length: 256 }, () => 'a')])
    assert.throws(() => encodeSmbiosStrings(strings), RangeError);
});
