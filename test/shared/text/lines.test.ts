import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { cleanLine, lastLineOf, LineSplitter, readLines } from '#shared/text/lines.ts';

test('lines are the same wherever the stream is cut', async () => {
  const line = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .map((text) => `{${text.replaceAll('\n', '')}}`);
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 8 }),
      fc.array(fc.nat(200), { maxLength: 8 }),
      async (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n\n`).join(''));
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = places.map((place, index) => bytes.subarray(place, places[index + 1]));
        const stream = Readable.from(chunks, { objectMode: false });
        assert.deepEqual(await Array.fromAsync(readLines(stream, 1000)), lines);
      },
    ),
  );
});

test('a line that the stream breaks off in is left out', async () => {
  const stream = Readable.from(['whole\nbro', 'ken'], { objectMode: false });
  assert.deepEqual(await Array.fromAsync(readLines(stream, 1000)), ['whole']);
});

test('a line that does not end is refused before it is kept', () => {
  const splitter = new LineSplitter({ maxLength: 10, longer: 'refuse' });
  assert.deepEqual(splitter.push('12345'), []);
  assert.throws(() => splitter.push('678901'), RangeError);
});

test('the bound is for each line, not for the stream', () => {
  const splitter = new LineSplitter({ maxLength: 4, longer: 'refuse' });
  for (let round = 0; round < 100; round += 1) {
    assert.deepEqual(splitter.push('abcd\n'), ['abcd']);
  }
});

test('a log shows what a progress bar showed last, and lets no escape sequence through', () => {
  const splitter = new LineSplitter({ maxLength: 65_536, longer: 'cut' });
  const lines = ['on', 'e\ntwo\r\n10%\r50%\r100%\n', '\u001b[31mred', '\n\nend']
    .flatMap((text) => splitter.push(text))
    .map(cleanLine);
  assert.deepEqual([...lines, splitter.end()], ['one', 'two', '100%', '?[31mred', '', 'end']);
});

test('a line without end costs bounded memory and does not swallow the next', () => {
  const splitter = new LineSplitter({ maxLength: 65_536, longer: 'cut' });
  for (let count = 0; count < 100; count += 1) splitter.push('x'.repeat(10_000));
  const lines = splitter.push('\nnext\n');
  assert.deepEqual([lines[0]?.length, lines[1]], [65_536, 'next']);
});

test('what a program said in the end is its last line that is not empty', () => {
  assert.equal(lastLineOf('first\nlast \n\n'), 'last');
  assert.equal(lastLineOf(' \n'), '');
});

test('a warning is not the reason where there is another line', () => {
  const warning = 'qemu-img: warning: Use of "backing": "" is deprecated';
  assert.equal(lastLineOf(`error\n${warning}\n`), 'error');
  assert.equal(lastLineOf(`first\n${warning}`), 'first');
  assert.equal(lastLineOf(`${warning}\n`), warning);
  assert.equal(lastLineOf('WARNING: a\n  WARNING: b\nc'), 'c');
});
