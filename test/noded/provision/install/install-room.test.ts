import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import {
  InstallRoom,
  type InstallRoomOptions,
} from '../../../../noded/provision/install/install-room.ts';
import type { JobReporter } from '../../../../noded/jobs/job-handler.ts';

const PLENTY_MIB = 1_000_000;

/** Creates jobs that ask for room, and records their reports while they wait. */
function createRoom(options: Partial<InstallRoomOptions> = {}) {
  const room = new InstallRoom({
    maxInstalls: 100,
    reserveMiB: 0,
    availableMiB: () => PLENTY_MIB,
    takenMiB: () => 0,
    ...options,
  });
  const ask = (jobId: number, memoryMiB = 512) => {
    const controller = new AbortController();
    const told: (readonly [string | null, readonly number[]])[] = [];
    const silent = (): void => undefined;
    const report: JobReporter = {
      log: silent,
      stageStarted: silent,
      stageFinished: silent,
      progress: silent,
      output: silent,
      scriptOutput: silent,
      waits: (reason, jobs) => void told.push([reason, jobs]),
    };
    const entered = room.enter(
      { uuid: `uuid-${jobId}`, memoryMiB },
      { jobId, signal: controller.signal, report },
    );
    let isIn = false;
    entered.then(
      () => (isIn = true),
      () => undefined,
    );
    return {
      entered,
      told,
      isIn: () => isIn,
      cancel: (reason: Error) => controller.abort(reason),
      leave: async () => (await entered)[Symbol.dispose](),
    };
  };
  return { room, ask };
}

test('as many run as are allowed, the next one waits and is told for whom, in order', async () => {
  const { ask } = createRoom({ maxInstalls: 2 });
  const jobs = [1, 2, 3, 4].map((id) => ask(id));
  const [one, , three, four] = jobs;
  await turn();
  assert.deepEqual(
    jobs.map((job) => job.isIn()),
    [true, true, false, false],
  );
  assert.match(
    three?.told[0]?.[0] ?? '',
    /^capacity of the node: gnt-noded --max-installs allows 2/,
  );
  assert.deepEqual(three?.told[0]?.[1], [1, 2]);
  assert.deepEqual(four?.told.at(-1)?.[1], [3], 'who is not first waits for the one before it');
  await one?.leave();
  await turn();
  assert.deepEqual(
    jobs.map((job) => job.isIn()),
    [true, true, true, false],
  );
  assert.deepEqual(three?.told.at(-1), [null, []]);
  assert.deepEqual(four?.told.at(-1)?.[1], [2, 3]);
});

test('memory that is promised to those that run counts, and what they have taken counts once', async () => {
  let availableMiB = 2000;
  let takenMiB = 0;
  const { ask, room } = createRoom({
    reserveMiB: 100,
    availableMiB: () => availableMiB,
    takenMiB: () => takenMiB,
  });
  const first = ask(1, 800);
  const second = ask(2, 800);
  await turn();
  assert.deepEqual([first.isIn(), second.isIn()], [true, false]);
  assert.match(second.told[0]?.[0] ?? '', /^memory of the node: the installation needs 992 MiB/);
  // The first job uses its promised memory, so no more memory is free.
  [availableMiB, takenMiB] = [1008, 992];
  room.reconsider();
  await turn();
  assert.equal(second.isIn(), false);
  // Another process ends.
  availableMiB = 1100;
  room.reconsider();
  await turn();
  assert.equal(second.isIn(), true);
});

test('an installation alone gets in, however little memory there is', async () => {
  const { ask } = createRoom({ availableMiB: () => 10, reserveMiB: 1000 });
  const first = ask(1);
  const second = ask(2);
  await turn();
  assert.deepEqual([first.isIn(), second.isIn()], [true, false]);
  await first.leave();
  await second.leave();
});

test('a small installation does not pass a large one that came before it', async () => {
  const { ask } = createRoom({ availableMiB: () => 2500 });
  const first = ask(1, 1000);
  const large = ask(2, 2000);
  const small = ask(3, 100);
  await turn();
  assert.deepEqual([large.isIn(), small.isIn()], [false, false]);
  await first.leave();
  await turn();
  assert.deepEqual([large.isIn(), small.isIn()], [true, true]);
});

test('who is cancelled while waiting leaves with the reason, and the one behind moves up', async () => {
  const { ask } = createRoom({ maxInstalls: 1 });
  const first = ask(1);
  const [second, third, fourth] = [ask(2), ask(3), ask(4)];
  await turn();
  third.cancel(new Error('no more'));
  await assert.rejects(third.entered, /no more/);
  assert.deepEqual(fourth.told.at(-1)?.[1], [2]);
  second.cancel(new Error('nor I'));
  await assert.rejects(second.entered, /nor I/);
  assert.deepEqual(fourth.told.at(-1)?.[1], [1]);
  await first.leave();
  await fourth.leave();
});

test('a thousand at once all get their turn, one after the other', async () => {
  const { ask } = createRoom({ maxInstalls: 3 });
  let running = 0;
  let most = 0;
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 1000 }, async (_, id) => {
      using held = new DisposableStack();
      held.use(await ask(id).entered);
      running += 1;
      most = Math.max(most, running);
      order.push(id);
      await turn();
      running -= 1;
    }),
  );
  assert.equal(most, 3);
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  );
  assert.equal(order.length, 1000);
});

test('room that was given back twice is free once', async () => {
  const { ask } = createRoom({ maxInstalls: 1 });
  const room = await ask(1).entered;
  room[Symbol.dispose]();
  const second = ask(2);
  await second.entered;
  room[Symbol.dispose]();
  const third = ask(3);
  await turn();
  assert.equal(third.isIn(), false);
  await second.leave();
  await third.leave();
});
