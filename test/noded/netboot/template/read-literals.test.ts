import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDecimal } from '../../../../noded/netboot/template/read-literals.ts';

for (const [text, expected] of [
  ['1', 1],
  ['-1.5', -1.5],
  ['+.5', 0.5],
  ['1.', 1],
  ['1e3', 1000],
  ['1E-2', 0.01],
  ['1e999', Infinity],
  // Not numbers of Go.
  ['', null],
  ['.', null],
  ['1.2.3', null],
  ['1e', null],
  ['1e+', null],
  ['e5', null],
  ['1x', null],
  ['0x10', null],
  ['1 ', null],
  ['Infinity', null],
  ['--1', null],
] as const) {
  test(`the decimal number '${text}' is ${expected}`, () => {
    assert.equal(readDecimal(text), expected);
  });
}
