import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DatagramReader, encodeDatagram } from '#shared/stream/datagram-frames.ts';

const datagrams = [Buffer.from('first'), Buffer.alloc(0), Buffer.alloc(4096, 7)];
const stream = Buffer.concat(datagrams.map(encodeDatagram));

test('datagrams come out of a stream one by one, however it was cut, the empty one too', () => {
  for (const size of [1, 2, 3, 7, 4096, stream.length]) {
    const reader = new DatagramReader(4096);
    const found: Buffer[] = [];
    for (let at = 0; at < stream.length; at += size) {
      found.push(...reader.push(stream.subarray(at, at + size)));
    }
    assert.deepEqual(found, datagrams, `in pieces of ${size}`);
  }
});

test('a datagram that is too long is an error before its first byte has come', () => {
  const reader = new DatagramReader(4096);
  assert.throws(() => reader.push(Buffer.from([0x10, 0x01])), /of 4097 bytes/);
});
