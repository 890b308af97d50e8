import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLines } from '../../client/lines.ts';

function bodyOf(...pieces: readonly string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  return ReadableStream.from(pieces.map((piece) => encoder.encode(piece)));
}

test('lines arrive whole, whatever the pieces, and the last one needs no line feed', async () => {
  const found = await Array.fromAsync(readLines(bodyOf('{"a"', ':1}\n\n{"a":2}', '\n{"a":3}')));
  assert.deepEqual(found, [{ a: 1 }, { a: 2 }, { a: 3 }]);
});

test('a line that is not JSON fails', async () => {
  await assert.rejects(Array.fromAsync(readLines(bodyOf('{"a":1\n'))), SyntaxError);
});
