import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeLuxi,
  LuxiDecoder,
  LuxiParseFailure,
  LuxiRefusal,
  parseLuxiRequest,
} from '../../../metad/ganeti/luxi-requests.ts';

const parse = (method: unknown, args: unknown) =>
  parseLuxiRequest(JSON.stringify({ method, args }));

test('both methods take one argument', () => {
  assert.deepEqual(parse('echo', ['hi']), { method: 'echo', text: 'hi' });
  assert.deepEqual(parse('updateConfig', [{ name: 'web1' }]), {
    ...{ method: 'updateConfig', instance: { name: 'web1' } },
  });
});

for (const [what, text] of [
  ['no JSON', '{'],
  ['a list', '[]'],
  ['null', 'null'],
  ['no method', '{"args":["x"]}'],
  ['a number as its method', '{"method":7,"args":["x"]}'],
  ['no arguments', '{"method":"echo"}'],
  ['too many values', JSON.stringify({ method: 'echo', args: new Array(50_001).fill(0) })],
] as const) {
  test(`${what} ends the connection`, () => {
    assert.throws(() => parseLuxiRequest(text), LuxiParseFailure);
  });
}

for (const [what, method, args] of [
  ['an unknown method', 'stop', ['x']],
  ['two arguments', 'echo', ['x', 'y']],
  ['an object of arguments', 'echo', {}],
  ['an echo of a number', 'echo', [7]],
] as const) {
  test(`${what} is refused, and the connection stays`, () => {
    assert.throws(() => parse(method, args), LuxiRefusal);
  });
}

test('messages are put together from pieces of any size', () => {
  const bytes = Buffer.concat([encodeLuxi({ a: 1 }), encodeLuxi('two'), Buffer.from('{"r')]);
  for (const size of [1, 3, bytes.length]) {
    const decoder = new LuxiDecoder(100);
    assert.equal(decoder.isInMessage, false);
    const messages: string[] = [];
    for (let at = 0; at < bytes.length; at += size)
      messages.push(...decoder.push(bytes.subarray(at, at + size)));
    assert.deepEqual(messages, ['{"a":1}', '"two"'], `${size} bytes at a time`);
    assert.equal(decoder.isInMessage, true);
  }
});

test('a message is refused beyond the limit, however it is split', () => {
  assert.deepEqual(new LuxiDecoder(4).push(Buffer.from('1234\x03')), ['1234']);
  assert.throws(() => new LuxiDecoder(4).push(Buffer.from('12345')), RangeError);
  const decoder = new LuxiDecoder(4);
  decoder.push(Buffer.from('123'));
  assert.throws(() => decoder.push(Buffer.from('45')), RangeError);
});
