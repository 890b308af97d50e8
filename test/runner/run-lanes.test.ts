import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { runLanes } from './run-lanes.ts';

test('a lane has as many jobs at once as workers, beside those of other lanes, and none begins after the end', async () => {
  const controller = new AbortController();
  const running = { machines: 0, rest: 0 };
  const most = { machines: 0, rest: 0, together: 0 };
  const job = (lane: 'machines' | 'rest', number: number) => async (): Promise<string> => {
    running[lane] += 1;
    most[lane] = Math.max(most[lane], running[lane]);
    most.together = Math.max(most.together, running.machines + running.rest);
    await turn();
    running[lane] -= 1;
    if (lane === 'rest' && number === 7) controller.abort();
    return `${lane} ${number}`;
  };
  const jobs = (lane: 'machines' | 'rest', count: number): (() => Promise<string>)[] =>
    Array.from({ length: count }, (_, number) => job(lane, number));
  const told: string[] = [];
  const leftOut = await runLanes(
    [
      { jobs: jobs('machines', 2), workers: 1 },
      { jobs: jobs('rest', 12), workers: 3 },
    ],
    (result) => told.push(result),
    controller.signal,
  );
  assert.deepEqual(most, { machines: 1, rest: 3, together: 4 });
  assert.equal(told.length + leftOut, 14);
  assert.ok(leftOut > 0 && told.includes('machines 1') && told.includes('rest 7'));
});

test('who has nothing left helps in another lane', async () => {
  const running = { now: 0, most: 0 };
  const machine = async (): Promise<string> => {
    running.now += 1;
    running.most = Math.max(running.most, running.now);
    await turn();
    running.now -= 1;
    return 'machine';
  };
  const told: string[] = [];
  const lanes = [
    { jobs: Array.from({ length: 6 }, () => machine), workers: 1 },
    { jobs: [async () => 'rest'], workers: 1, then: 0 },
  ];
  const { signal } = new AbortController();
  assert.equal(await runLanes(lanes, (result) => told.push(result), signal), 0);
  assert.equal(told.length, 7);
  assert.equal(running.most, 2);
});
