import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { startPatiently } from '../../../noded/wiring/start-patiently.ts';

const unavailable = new AppError('STORE_UNAVAILABLE', 'the store does not answer');
/** Returns a clock that advances by a minute with each start. */
const hurried = (starts: () => number): { now(): number; monotonicMs(): number } => ({
  now: () => 0,
  monotonicMs: () => starts() * 60_000,
});

test('a start that the store broke off is made again', async () => {
  let starts = 0;
  const start = (): Promise<number> =>
    (starts += 1) < 3 ? Promise.reject(unavailable) : Promise.resolve(starts);
  const clock = hurried(() => 0);
  const { signal: stop } = new AbortController();
  assert.equal(await startPatiently(start, { stop, clock, logger: silentLogger }), 3);
});

test('it gives up after a while, when it is to stop, and for anything else', async () => {
  for (const [error, isToStop, expected] of [
    [unavailable, false, 1],
    [unavailable, true, 1],
    [new AppError('STORE_KEY', 'another key'), false, 1],
  ] as const) {
    let starts = 0;
    const start = (): Promise<never> => {
      starts += 1;
      return Promise.reject(error);
    };
    const stop = isToStop ? AbortSignal.abort() : new AbortController().signal;
    const clock = hurried(() => starts);
    await assert.rejects(startPatiently(start, { stop, clock, logger: silentLogger }), error);
    assert.equal(starts, expected);
  }
});
