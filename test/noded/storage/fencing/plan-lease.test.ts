import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  leftMs,
  observe,
  planInterval,
  planTimes,
  type Observation,
} from '../../../../noded/storage/fencing/plan-lease.ts';

const TTL_MS = 60_000;

test('a machine is paused after two thirds of a lease, and ends after twice as long', () => {
  assert.deepEqual(planTimes(1000.9, TTL_MS), { pauseAtS: 1040, endAtS: 1120 });
});

test('a lease is renewed several times before it would be over', () => {
  assert.ok(planInterval(TTL_MS) * 8 <= 40_000);
});

test('whoever looks from outside waits for the whole lease since the last renewal that he saw', () => {
  const first = observe(undefined, 7, 1000);
  assert.equal(leftMs(first, TTL_MS, 1000), TTL_MS);
  const same = observe(first, 7, 50_000);
  assert.equal(leftMs(same, TTL_MS, 61_000), 0);
  const renewed = observe(same, 8, 60_999);
  assert.equal(leftMs(renewed, TTL_MS, 61_000), TTL_MS - 1);
});

test('a lease that there never was is waited for too', () => {
  const none = observe(undefined, null, 0);
  assert.ok(leftMs(observe(none, null, 59_000), TTL_MS, 59_000) > 0);
  assert.equal(observe(none, 1, 59_000).sinceMs, 59_000);
});

test('no one takes before the other one has paused, however late renewals and looks are', () => {
  // For each: the delay of a renewal in the store, and of the look after it.
  for (const [delayS, lookS] of [
    [0, 0],
    [0.5, 0],
    [30, 1],
    [59, 20],
    [0, 59],
  ] as const) {
    const askedAtS = 500;
    const { pauseAtS } = planTimes(askedAtS, TTL_MS);
    const seenAtMs = (askedAtS + delayS + lookS) * 1000;
    const seen: Observation = observe(undefined, 1, seenAtMs);
    const takenAtMs = seenAtMs + leftMs(seen, TTL_MS, seenAtMs);
    assert.ok(takenAtMs - pauseAtS * 1000 >= TTL_MS / 3, `${delayS} ${lookS}`);
  }
});
