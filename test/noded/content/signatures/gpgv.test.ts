import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areSignaturePackets } from '../../../../noded/content/signatures/gpgv.ts';

const packet = (header: readonly number[], length: number): Buffer =>
  Buffer.concat([Buffer.from(header), Buffer.alloc(length, 0xff)]);

/** Signature packets with every form of length. */
const signatures = [
  packet([0x88, 3], 3),
  packet([0x89, 0x01, 0x00], 256),
  packet([0x8a, 0, 0, 0x01, 0x00], 256),
  packet([0xc2, 191], 191),
  packet([0xc2, 192, 0], 192),
  packet([0xc2, 0xff, 0, 0, 0, 5], 5),
];

test('signature packets are recognized in both formats, alone and in a row', () => {
  for (const signature of signatures) assert.ok(areSignaturePackets(signature));
  assert.ok(areSignaturePackets(Buffer.concat(signatures)));
});

test('other packets, partial lengths, truncated packets and empty data are refused', () => {
  const signature = packet([0x88, 3], 3);
  for (const rest of [
    packet([0xcb, 3], 3),
    packet([0xac, 3], 3),
    packet([0x8b], 3),
    packet([0xc2, 0xe1], 2),
    packet([0x88, 3], 2),
    packet([0xc2, 192], 0),
    packet([0xc2, 0xff, 0, 0], 0),
    packet([0xc2], 0),
    packet([0x08, 3], 3),
  ]) {
    assert.ok(!areSignaturePackets(rest), rest.toString('hex'));
    assert.ok(!areSignaturePackets(Buffer.concat([signature, rest])), rest.toString('hex'));
  }
  assert.ok(!areSignaturePackets(Buffer.alloc(0)));
});
