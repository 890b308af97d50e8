import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { every } from '#shared/clock/every.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('starts work after every interval until it is disposed of', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  let runs = 0;
  const repeating = every(100, () => void (runs += 1));
  assert.equal(runs, 0);
  for (let passed = 0; passed < 3; passed += 1) {
    mock.timers.tick(100);
    await turn();
  }
  assert.equal(runs, 3);
  repeating[Symbol.dispose]();
  mock.timers.tick(100);
  assert.equal(runs, 3);
  mock.timers.reset();
});

test('starts no second run while one lasts, the first of all included', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const ends: (() => void)[] = [];
  const work = (): Promise<void> => new Promise((resolve) => void ends.push(resolve));
  const repeating = every(100, work, { startsNow: true });
  mock.timers.tick(250);
  assert.equal(ends.length, 1);
  ends[0]?.();
  await turn();
  mock.timers.tick(100);
  assert.equal(ends.length, 2);
  repeating[Symbol.dispose]();
  mock.timers.reset();
});
