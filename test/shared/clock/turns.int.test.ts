import assert from 'node:assert/strict';
import { test } from 'node:test';
import { othersTurn } from '#shared/clock/turns.ts';
import { type Stretches, threadStretches } from '../../lab/thread-time.ts';

const WORKS = 20;
const PIECES = 20;
const PIECE_MS = 1;

function workFor(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

async function workInPieces(): Promise<void> {
  for (let piece = 0; piece < PIECES; piece += 1) {
    workFor(PIECE_MS);
    await othersTurn();
  }
}

test('who waits for something else waits as long for many works in pieces as for one', async () => {
  // 3 ms and one piece of each work. With separate turns it would be 3 ms for each.
  const isFine = ({ longestMs }: Stretches): boolean => longestMs < 50;
  const stretches = await threadStretches(
    () => Promise.all(Array.from({ length: WORKS }, workInPieces)),
    isFine,
  );
  assert.ok(isFine(stretches), JSON.stringify(stretches));
});
