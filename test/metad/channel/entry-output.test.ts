import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EntryOutput } from '../../../metad/channel/entry-output.ts';
import { fc } from '../../lab/fast-check.ts';

const LINE = 8191;
const cut = (line: string): string => line.slice(0, LINE);

function texts(pieces: readonly { readonly text: string }[]): string {
  return pieces.map(({ text }) => text).join('');
}

test('split, repeated and overlapping pieces are joined to the printed text', () => {
  const line = fc
    .string({ unit: 'binary', maxLength: 40 })
    .map((text) => text.replaceAll('\n', ''));
  const printed = fc.array(line).map((lines) => Buffer.from(lines.join('\n')));
  const posts = fc.array(fc.tuple(fc.nat(20), fc.nat(60)), { maxLength: 200 });
  fc.assert(
    fc.property(printed, posts, (bytes, sizes) => {
      const output = new EntryOutput('boot/01-x');
      let text = '';
      for (const [back, size] of [...sizes, [0, bytes.length] as const]) {
        const offset = Math.max(0, output.end - back);
        text += texts(output.push(offset, bytes.subarray(offset, output.end + size), cut));
      }
      assert.equal(text + texts(output.flush(cut)), bytes.toString());
    }),
  );
});

test('a value that comes in two posts is masked', () => {
  const mask = (line: string): string => line.replaceAll('S3CRET', '*').slice(0, LINE);
  const output = new EntryOutput('boot/01-x');
  const first = output.push(0, Buffer.from('a S3C'), mask);
  const rest = output.push(5, Buffer.from('RET b\n'), mask);
  assert.deepEqual([texts(first), texts(rest)], ['', 'a * b\n']);
});

test('a line without an end is held within a bound, cut, and counted', () => {
  const output = new EntryOutput('boot/01-x');
  const piece = Buffer.alloc(65_536, 'x');
  for (let at = 0; at < 8; at++) assert.deepEqual(output.push(at * piece.length, piece, cut), []);
  const pieces = output.push(8 * piece.length, Buffer.from('\n'), cut);
  assert.deepEqual(
    pieces.map(({ text, lostBytes }) => [text.length, lostBytes]),
    [[LINE + 1, 8 * piece.length - LINE]],
  );
});

test('no piece is longer than one line of the event stream holds', () => {
  const output = new EntryOutput('boot/01-x');
  const lines = Array.from({ length: 64 }, (_, at) => 'y'.repeat(at * 32)).join('\n');
  const pieces = output.push(0, Buffer.from(`${lines}\n`), cut);
  assert.ok(pieces.length > 1 && pieces.every(({ text }) => text.length <= 8192));
  assert.equal(texts(pieces), `${lines}\n`);
});
