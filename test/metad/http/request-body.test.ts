import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { MAX_BODY_PIECES } from '../../../metad/config/limits.ts';
import { readBody } from '../../../metad/http/request-body.ts';

/** A request, and the stream of its body. */
function requestOf(declared?: number) {
  const headers = declared === undefined ? {} : { 'content-length': String(declared) };
  const stream = Object.assign(new PassThrough(), { headers });
  return { stream, body: readBody(stream as unknown as IncomingMessage, 8) };
}

for (const [what, pieces, declared, expected] of [
  ['of the limit', ['12345', '678'], 8, '12345678'],
  ['of the limit and unknown length', ['12345', '678'], undefined, '12345678'],
  ['beyond the limit', ['12345', '6789'], undefined, 'too-large'],
  ['declared beyond the limit', [], 9, 'too-large'],
  ['without bytes', [], 0, ''],
] as const) {
  test(`a body ${what}: ${expected || 'empty'}`, async () => {
    const { stream, body } = requestOf(declared);
    for (const piece of pieces) stream.write(piece);
    stream.end();
    const result = await body;
    assert.equal(result.kind === 'complete' ? result.bytes.toString() : result.kind, expected);
  });
}

test('a body that breaks off gets no answer', async () => {
  const { stream, body } = requestOf();
  stream.write('12');
  stream.destroy();
  assert.deepEqual(await body, { kind: 'aborted' });
});

test('a body of too many pieces is cut off', async () => {
  const headers = {};
  const stream = Object.assign(new PassThrough(), { headers });
  const body = readBody(stream as unknown as IncomingMessage, MAX_BODY_PIECES * 4);
  // Each piece is read by itself.
  for (let n = 0; n < MAX_BODY_PIECES * 2 && !stream.destroyed; n++) {
    stream.write('x');
    await turn();
  }
  assert.deepEqual(await body, { kind: 'aborted' });
  assert.ok(stream.destroyed);
});
