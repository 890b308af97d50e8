import assert from 'node:assert/strict';
import { answerQuery } from '../../../metad/names/dns-message.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

const KNOWN = 'metadata.google.internal';
const ADDRESS = '169.254.169.254';
const NAMES = new Map([[KNOWN, ADDRESS]]);
const RECORD_BYTES = 16;

/** Checks DNS: an answer repeats the query, is hardly longer, and has records of known names. */
export function dnsTarget(answer: typeof answerQuery = answerQuery): Target {
  return { name: 'dns', generate, open: () => openPure((input) => check(input, answer)) };
}

function generate(random: SeededRandom): Buffer {
  const name = random.pick([KNOWN, KNOWN, KNOWN.toUpperCase(), 'deb.debian.org', `x.${KNOWN}`, '']);
  const labels = name === '' ? [] : name.split('.');
  const question = [
    ...labels.flatMap((label) => [label.length, ...Buffer.from(label)]),
    ...random.pick([[0], [0], [0xc0, 12], [63]]),
    ...[0, random.pick([1, 1, 28, 255])],
    ...[0, random.pick([1, 1, 3, 255])],
  ];
  const flags = random.pick([0x0100, 0x0100, 0x8100, 0x2800, random.below(65_536)]);
  const counts = [random.pick([0, 1, 1, 1, 2]), 0, 0, random.below(2)].flatMap((count) => [
    0,
    count,
  ]);
  const id = [random.below(256), random.below(256)];
  const message = Buffer.from([...id, flags >> 8, flags & 0xff, ...counts, ...question]);
  return random.below(4) === 0 ? message : mutate(message, random);
}

function check(input: Buffer, answer: typeof answerQuery): void {
  const before = Buffer.from(input);
  const given = answer(input, NAMES);
  assert.ok(before.equals(input), 'the parser has changed its input');
  if (given === null) return;
  assert.equal(given.readUInt16BE(0), input.readUInt16BE(0));
  assert.equal(input.readUInt16BE(2) & 0x8000, 0, 'an answer to an answer');
  assert.equal(given.readUInt16BE(2) & 0x8000, 0x8000);
  assert.ok(given.length <= input.length + RECORD_BYTES, 'an answer much longer than its query');
  const records = given.readUInt16BE(6);
  const question = given.subarray(12, given.length - records * RECORD_BYTES);
  assert.ok(question.equals(input.subarray(12, 12 + question.length)), 'another question');
  if (records === 0) return;
  assert.equal(
    question.toString('latin1', 1).toLowerCase().split('\0', 1)[0]?.length,
    KNOWN.length,
  );
  assert.equal(given.subarray(-4).join('.'), ADDRESS);
}
