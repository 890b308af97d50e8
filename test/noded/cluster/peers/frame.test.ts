import assert from 'node:assert/strict';
import { test } from 'node:test';
import nacl from 'tweetnacl';
import { FrameOpener, FrameSealer, FrameType } from '../../../../noded/cluster/peers/frame.ts';

const key = nacl.randomBytes(32);
const body = Buffer.from('body');

test('accepts frames in order, each once', () => {
  const sealer = new FrameSealer(key, 0);
  const opener = new FrameOpener(key, 0);
  const [first, second] = [sealer.seal(FrameType.data, body), sealer.seal(FrameType.end, body)];
  assert.deepEqual(opener.open(first), { type: FrameType.data, body });
  assert.equal(opener.open(first), 'ignored');
  assert.deepEqual(opener.open(second), { type: FrameType.end, body });
});

test('reports a missing earlier frame', () => {
  const sealer = new FrameSealer(key, 0);
  sealer.seal(FrameType.data, body);
  assert.equal(new FrameOpener(key, 0).open(sealer.seal(FrameType.data, body)), 'lost');
});

test('ignores frames that are changed, reflected, truncated or sealed with another key', () => {
  const frame = new FrameSealer(key, 0).seal(FrameType.data, body);
  const opener = new FrameOpener(key, 0);
  for (let at = 0; at < frame.length; at += 1) {
    const changed = Buffer.from(frame);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(opener.open(changed), 'ignored', `byte ${at}`);
    assert.equal(opener.open(frame.subarray(0, at)), 'ignored', `${at} bytes`);
  }
  assert.equal(opener.open(Buffer.concat([frame, Buffer.alloc(70_000)])), 'ignored');
  assert.equal(new FrameOpener(key, 1).open(frame), 'ignored');
  assert.equal(new FrameOpener(nacl.randomBytes(32), 0).open(frame), 'ignored');
  assert.deepEqual(opener.open(frame), { type: FrameType.data, body });
});
