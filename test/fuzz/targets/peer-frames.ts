import assert from 'node:assert/strict';
import {
  FrameOpener,
  FrameSealer,
  FrameType,
  MAX_FRAME_BODY_BYTES,
} from '../../../noded/cluster/peers/frame.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

/** Fixed, so that cases are reproducible. */
const KEY = new Uint8Array(32).fill(7);
const LENGTH_BYTES = 4;
const MAX_BODY_BYTES = 64;

/**
 * Checks the frames of a stream: sealed frames are accepted once and in order, all others are
 * refused.
 */
export function peerFramesTarget(
  createOpener: () => Pick<FrameOpener, 'open'> = () => new FrameOpener(KEY, 0),
): Target {
  return {
    name: 'peer-frames',
    generate,
    open: () => openPure((input) => check(input, createOpener())),
  };
}

/** Seals numbered bodies, which identify their position. */
function sealed(count: number, bodyBytes: number): Buffer[] {
  const sealer = new FrameSealer(KEY, 0);
  return Array.from({ length: count }, (_, number) =>
    sealer.seal(FrameType.data, Buffer.alloc(bodyBytes, number)),
  );
}

function generate(random: SeededRandom): Buffer {
  const frames = sealed(1 + random.below(3), random.below(MAX_BODY_BYTES)).flatMap((frame) => {
    switch (random.below(8)) {
      case 0:
        return []; // lost
      case 1:
        return [frame, frame]; // replayed
      case 2:
        return [mutate(frame, random)];
      case 3:
        return [new FrameSealer(KEY, 1).seal(FrameType.data, frame.subarray(0, 9)), frame]; // reflected
      default:
        return [frame];
    }
  });
  const order = random.below(6) === 0 ? random.shuffle(frames) : frames;
  return Buffer.concat(
    order.flatMap((frame) => {
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt32BE(frame.length);
      return [length, frame];
    }),
  );
}

function split(input: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + LENGTH_BYTES <= input.length;) {
    const end = at + LENGTH_BYTES + input.readUInt32BE(at);
    frames.push(input.subarray(at + LENGTH_BYTES, end));
    at = end;
  }
  return frames;
}

function check(input: Buffer, opener: Pick<FrameOpener, 'open'>): void {
  let taken = 0;
  for (const frame of split(input)) {
    const opened = opener.open(frame);
    if (opened === 'lost') return; // ends the stream
    if (opened === 'ignored') continue;
    assert.ok(opened.body.length <= MAX_FRAME_BODY_BYTES);
    assert.equal(opened.type, FrameType.data);
    assert.ok(
      opened.body.equals(Buffer.alloc(opened.body.length, taken)),
      `frame ${taken} is another`,
    );
    assert.ok(
      frame.equals(sealed(taken + 1, opened.body.length).at(-1) ?? Buffer.alloc(0)),
      'a frame that nobody sealed',
    );
    taken += 1;
  }
}
