import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  FIRST_WINDOW_BYTES,
  FRAME_COST_BYTES,
  MAX_STREAMS,
  MAX_WINDOW_BYTES,
  ReceiveWindow,
  WindowPool,
} from '../../../../noded/cluster/peers/receive-window.ts';

const MIB = 2 ** 20;
/** A frame that is the whole of a first window. */
const FIRST_BODY = FIRST_WINDOW_BYTES - FRAME_COST_BYTES;

test('the peer may send its first window, and one byte more is refused', () => {
  assert.ok(new ReceiveWindow(new WindowPool()).receive(FIRST_BODY));
  assert.ok(!new ReceiveWindow(new WindowPool()).receive(FIRST_BODY + 1));
  const many = new ReceiveWindow(new WindowPool());
  const count = FIRST_WINDOW_BYTES / (FRAME_COST_BYTES + 1);
  for (let frame = 0; frame < Math.floor(count); frame += 1) assert.ok(many.receive(1));
  assert.ok(!many.receive(1), 'frames of one byte weigh what they take in Redis');
});

test('a stream that is read gets a larger window, up to the maximum', () => {
  const window = new ReceiveWindow(new WindowPool());
  assert.ok(window.receive(FIRST_BODY));
  assert.equal(window.grant(), 0, 'nothing was read');
  window.take(FIRST_BODY);
  assert.equal(window.grant(), MAX_WINDOW_BYTES);
  assert.equal(window.grant(), 0, 'it has all that there is');
});

test('all streams of a node share windows of 7 MiB, and return them when they close', () => {
  const pool = new WindowPool();
  const round = (): number => {
    const windows = Array.from({ length: 2 * MAX_STREAMS }, () => new ReceiveWindow(pool));
    const allowed = windows.map((window) => {
      window.receive(FIRST_BODY);
      window.take(FIRST_BODY);
      return window.grant();
    });
    assert.ok(allowed.every((bytes) => bytes >= FIRST_WINDOW_BYTES));
    for (const window of windows) {
      window.close();
      window.close();
    }
    return allowed.reduce((sum, bytes) => sum + bytes, 0);
  };
  const first = round();
  assert.ok(first > 6 * MIB && first <= 7 * MIB, String(first));
  assert.equal(round(), first);
});

test('a stream that is read gets its window again after each of 1000 rounds', () => {
  const pool = new WindowPool();
  const use = (window: ReceiveWindow, bytes: number): void => {
    assert.ok(window.receive(bytes - FRAME_COST_BYTES));
    window.take(bytes - FRAME_COST_BYTES);
  };
  const one = new ReceiveWindow(pool);
  use(one, FIRST_WINDOW_BYTES);
  const held = one.grant();
  for (let round = 0; round < 1000; round += 1) {
    use(one, held);
    assert.equal(one.grant(), held);
  }
});
