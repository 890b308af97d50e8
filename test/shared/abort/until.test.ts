import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pause, until } from '#shared/abort/until.ts';

test('looks until the condition holds', async () => {
  let looks = 0;
  const holds = (): Promise<boolean> => Promise.resolve(++looks === 3);
  assert.equal(await until(holds, { everyMs: 1 }), true);
  assert.equal(looks, 3);
});

test('gives up after the limit of the given clock', async () => {
  let nowMs = 0;
  const clock = { monotonicMs: () => (nowMs += 10) };
  assert.equal(await until(() => false, { everyMs: 1, limitMs: 25, clock }), false);
  assert.equal(nowMs, 40);
});

test('passes on the reason of an abort unchanged, at once', async () => {
  const over = new AbortController();
  const reason = new Error('enough');
  const waiting = until(() => false, { everyMs: 60_000, signal: over.signal });
  setImmediate(() => over.abort(reason));
  await assert.rejects(waiting, (error) => error === reason);
});

test('a pause ends without an error when its signal aborts, and reports which end it was', async () => {
  const over = new AbortController();
  const waiting = pause(60_000, over.signal);
  over.abort();
  assert.equal(await waiting, false);
  assert.equal(await pause(60_000, over.signal), false);
  assert.equal(await pause(1, undefined), true);
});
