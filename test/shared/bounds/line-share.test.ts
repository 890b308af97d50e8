import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineShare } from '#shared/bounds/line-share.ts';

const rates = { rate: { perSecond: 20, burst: 500 }, share: { perSecond: 0.25, burst: 4000 } };

test('who asks for a line a thousand times a second gets its share in an hour, and no more', () => {
  const share = new LineShare(rates, 0);
  let lines = 0;
  for (let nowMs = 0; nowMs < 3_600_000; nowMs += 1) if (share.take(nowMs) !== null) lines++;
  assert.ok(lines <= 4000 + 900 + 1, `${lines} lines`);
  assert.ok(lines >= 4000, `${lines} lines`);
});

test('the next line tells how many were left out', () => {
  const share = new LineShare({ rate: { perSecond: 1, burst: 2 }, share: rates.share }, 0);
  assert.deepEqual(
    [share.take(0), share.take(0), share.take(0), share.take(1)],
    [0, 0, null, null],
  );
  assert.deepEqual([share.take(1100), share.take(2200)], [2, 0]);
});

test('what the rate leaves out does not use up the share', () => {
  const share = new LineShare(
    { rate: { perSecond: 1, burst: 1 }, share: { perSecond: 0, burst: 3 } },
    0,
  );
  for (let count = 0; count < 1000; count++) share.take(0);
  assert.notEqual(share.take(1000), null);
  assert.notEqual(share.take(2000), null);
  assert.equal(share.take(3000), null);
});
