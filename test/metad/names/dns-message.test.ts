import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerQuery } from '../../../metad/names/dns-message.ts';

const NAMES = new Map([['metadata.google.internal', '169.254.169.254']]);

interface Asked {
  readonly name: string;
  readonly type?: number;
  readonly flags?: number;
  readonly questions?: number;
}

function encodeQuery({ name, type = 1, flags = 0x0100, questions = 1 }: Asked): Buffer {
  const header = Buffer.from([
    0x12,
    0x34,
    flags >> 8,
    flags & 0xff,
    0,
    questions,
    0,
    0,
    0,
    0,
    0,
    0,
  ]);
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  return Buffer.concat([header, Buffer.from([...labels, 0, 0, type, 0, 1])]);
}

function codeOf(answer: Buffer | null): number {
  assert.ok(answer);
  return (answer[3] ?? 0) & 0x0f;
}

test('the answer for a known name has its address and the question of the query', () => {
  const query = encodeQuery({ name: 'Metadata.Google.internal' });
  const answer = answerQuery(query, NAMES);
  assert.ok(answer);
  assert.equal(answer.readUInt16BE(0), 0x1234);
  assert.equal(answer.readUInt16BE(2), 0x8500);
  assert.deepEqual(answer.subarray(4, 12), Buffer.from([0, 1, 0, 1, 0, 0, 0, 0]));
  assert.deepEqual(answer.subarray(12, query.length), query.subarray(12));
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 169, 254, 169, 254];
  assert.deepEqual([...answer.subarray(query.length)], record);
});

for (const [what, asked, code] of [
  ['another name is refused', { name: 'deb.debian.org' }, 5],
  ['a part of a known name is refused', { name: 'google.internal' }, 5],
  [
    'an IPv6 address of a known name does not exist',
    { name: 'metadata.google.internal', type: 28 },
    0,
  ],
  ['an update is not implemented', { name: 'metadata.google.internal', flags: 0x2800 }, 4],
] as const)
  test(`${what}: code ${code} without a record`, () => {
    const answer = answerQuery(encodeQuery(asked), NAMES);
    assert.equal(codeOf(answer), code);
    assert.equal(answer?.readUInt16BE(6), 0);
  });

const name = 'metadata.google.internal';
const whole = encodeQuery({ name });
for (const [what, message] of [
  ['an empty message', Buffer.alloc(0)],
  ['a header alone', whole.subarray(0, 12)],
  ['a name without an end', whole.subarray(0, 30)],
  ['a question without a class', whole.subarray(0, whole.length - 1)],
  ['an answer', encodeQuery({ name, flags: 0x8100 })],
  ['two questions', encodeQuery({ name, questions: 2 })],
  [
    'a pointer in the name',
    Buffer.concat([whole.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
  ],
  ['a name of 600 bytes', encodeQuery({ name: Array<string>(150).fill('abc').join('.') })],
] as const)
  test(`${what} gets no answer`, () => {
    assert.equal(answerQuery(message, NAMES), null);
  });
