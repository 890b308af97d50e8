import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';

test('a burst passes at once, then one request per interval, and the wait is told', () => {
  const rate = { perSecond: 10, burst: 3 };
  const bucket = new TokenBucket(rate.burst, 0);
  assert.deepEqual(
    [1, 2, 3].map(() => bucket.take(rate, 0)),
    [0, 0, 0],
  );
  assert.equal(bucket.take(rate, 0), 100);
  assert.equal(bucket.take(rate, 50), 50);
  assert.equal(bucket.take(rate, 100), 0);
  assert.equal(bucket.take(rate, 100), 100);
});

test('time without requests never gives more than a burst', () => {
  const rate = { perSecond: 10, burst: 2 };
  const bucket = new TokenBucket(rate.burst, 0);
  bucket.take(rate, 0);
  assert.deepEqual(
    [1, 2].map(() => bucket.take(rate, 1_000_000)),
    [0, 0],
  );
  assert.notEqual(bucket.take(rate, 1_000_000), 0);
});
