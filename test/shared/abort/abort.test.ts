import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mock, test } from 'node:test';
import { abortable, orAborted } from '#shared/abort/abortable.ts';
import { setAlarm } from '#shared/abort/alarm.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { WakeCalls } from '#shared/abort/wake-calls.ts';

const DAY_MS = 24 * 3600 * 1000;

function withTimers(t: { after(undo: () => void): void }): typeof mock.timers {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  return mock.timers;
}

test('an alarm that is further away than a timer reaches rings at its time, and not at once', (t) => {
  const timers = withTimers(t);
  let rings = 0;
  setAlarm(60 * DAY_MS, () => (rings += 1));
  for (let day = 1; day < 60; day += 1) timers.tick(DAY_MS);
  assert.equal(rings, 0);
  // These timers start the next one at the end of a tick, not within it.
  for (let day = 0; day < 10; day += 1) timers.tick(DAY_MS);
  assert.equal(rings, 1);
});

test("Node's own timer never sees a delay that it would cut to a millisecond", (t) => {
  const { mock: asked } = t.mock.method(globalThis, 'setTimeout');
  setAlarm(400 * DAY_MS, () => undefined)[Symbol.dispose]();
  assert.deepEqual(
    asked.calls.map(({ arguments: given }) => given[1]),
    [2 ** 31 - 1],
  );
});

test('an alarm that is disposed of is silent, on its last way too', (t) => {
  const timers = withTimers(t);
  let rings = 0;
  const alarm = setAlarm(30 * DAY_MS, () => (rings += 1));
  timers.tick(26 * DAY_MS);
  alarm[Symbol.dispose]();
  timers.tick(30 * DAY_MS);
  assert.equal(rings, 0);
});

test('a deadline aborts with its reason, and with the reason of the signal that it was given', (t) => {
  const timers = withTimers(t);
  const late = new Error('late');
  const own = startDeadline(undefined, 10, () => late);
  timers.tick(10);
  assert.equal(own.signal.reason, late);
  const job = new AbortController();
  using deadline = startDeadline(job.signal, null, () => late);
  timers.tick(400 * DAY_MS);
  assert.equal(deadline.signal.aborted, false);
  const canceled = new Error('canceled');
  job.abort(canceled);
  assert.equal(deadline.signal.reason, canceled);
});

test('a wait that is aborted leaves its queue, and rejects with the reason', async () => {
  const controller = new AbortController();
  const reason = new Error('canceled');
  let left = 0;
  const waiting = abortable(controller.signal, () => () => (left += 1));
  controller.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
  assert.equal(left, 1);
});

test('a wait begins to wait for nothing when it is aborted already', async () => {
  const wasStarted = () => assert.fail('it was started');
  await assert.rejects(abortable(AbortSignal.abort(new Error('x')), wasStarted), { message: 'x' });
});

test('a wait that ended holds no listener on the signal, which may live as long as the daemon', async () => {
  const { signal } = new AbortController();
  assert.equal(await orAborted(Promise.resolve(7), signal), 7);
  await assert.rejects(orAborted(Promise.reject(new Error('failed')), signal), {
    message: 'failed',
  });
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});

test('who waits again as soon as it is woken beside another is woken again', async () => {
  const calls = new WakeCalls();
  const { signal } = new AbortController();
  const again = calls.next('a', signal).then(() => calls.next('a', signal));
  const other = calls.next('a', signal);
  calls.wake('a');
  await other;
  calls.wake('a');
  await again;
});
