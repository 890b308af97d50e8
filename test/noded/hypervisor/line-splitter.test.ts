import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from '../../../noded/hypervisor/line-splitter.ts';

test('lines are the same wherever the stream is cut', () => {
  const line = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .map((text) => `{${text.replaceAll('\n', '')}}`);
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 8 }),
      fc.array(fc.nat(200), { maxLength: 8 }),
      (lines, cuts) => {
        const stream = Buffer.from(lines.map((text) => `${text}\r\n`).join(''));
        const splitter = new LineSplitter(1000);
        const got: string[] = [];
        let start = 0;
        for (const cut of [...cuts.sort((a, b) => a - b), stream.length]) {
          const end = Math.min(Math.max(cut, start), stream.length);
          got.push(...splitter.push(stream.subarray(start, end)));
          start = end;
        }
        assert.deepEqual(got, lines);
      },
    ),
  );
});

test('a line that does not end is refused before it is kept', () => {
  const splitter = new LineSplitter(10);
  assert.deepEqual(splitter.push(Buffer.from('12345')), []);
  assert.throws(() => splitter.push(Buffer.from('678901')), RangeError);
});

test('the bound is for each line, not for the stream', () => {
  const splitter = new LineSplitter(4);
  for (let round = 0; round < 100; round += 1) {
    assert.deepEqual(splitter.push(Buffer.from('abcd\n')), ['abcd']);
  }
});
