import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { LifecycleRecord } from '#shared/contract/lifecycle.ts';
import { silentLogger } from '#shared/log/log.ts';
import { LifecycleStore } from '../../../../noded/instances/run-lists/lifecycle-store.ts';
import { beginRun } from '../../../../noded/instances/run-lists/plan-lifecycle.ts';
import { instanceRecord } from '../../support/records.ts';

const { uuid } = instanceRecord();
const PAUSES = { pauseMs: 20, againMs: 20 };

function newRecord(run: string): LifecycleRecord {
  return beginRun(run, 0, { nowMs: 0, bootTimeoutS: null });
}

/** @param onWrite reaction of the store to the n-th attempt */
function createStore(onWrite: (attempt: number) => void, pauses = PAUSES) {
  let stored: InstanceRecord = instanceRecord();
  const attempts: (LifecycleRecord | null)[] = [];
  const store = new LifecycleStore(
    {
      findByUuid: () => Promise.resolve(stored),
      update: async (_uuid, change) => {
        const next = change(stored);
        attempts.push(next.lifecycle);
        onWrite(attempts.length);
        return Promise.resolve((stored = next));
      },
    },
    silentLogger,
    pauses,
  );
  return { store, attempts, stored: () => stored.lifecycle };
}

void test('what replaced a record during an outage of the store is what stays', async () => {
  const { store, attempts, stored } = createStore((attempt) => {
    if (attempt === 1) throw new Error('the store is away');
  });
  const [former, next] = [newRecord('former'), newRecord('next')];
  await Promise.all([store.keep(uuid, { record: former }), store.keep(uuid, { record: next })]);
  await store.keep(uuid, { record: next });
  assert.deepEqual(stored(), next);
  assert.equal(attempts.filter((record) => record === former).length <= 1, true);
});

void test('a record that is forgotten during an outage is not written later', async () => {
  const { store, stored } = createStore((attempt) => {
    if (attempt === 1) throw new Error('the store is away');
  });
  const keeping = store.keep(uuid, { record: newRecord('former') });
  await Promise.all([keeping, store.forgetFormer(uuid)]);
  assert.equal(stored(), null);
});

void test('another state is written at once, be it that of a moment ago that is just being written', async () => {
  const latest = { record: newRecord('0') };
  const done = Promise.withResolvers<void>();
  const { store, stored } = createStore(
    (attempt) => {
      if (attempt === 1) latest.record = { ...latest.record, state: 'operational' };
      if (attempt === 3) done.resolve();
    },
    { ...PAUSES, pauseMs: 60_000 },
  );
  void store.keep(uuid, latest);
  // Behind the second record there is a pause, which this one ends.
  while (stored()?.state !== 'operational') await new Promise(setImmediate);
  await new Promise(setImmediate);
  latest.record = { ...latest.record, state: 'stranded' };
  void store.keep(uuid, latest);
  await done.promise;
  assert.equal(stored()?.state, 'stranded');
});

void test('a script that begins is written at once, and nothing else of the same state', async () => {
  const latest = { record: { ...newRecord('0'), script: 'boot/01-a' } };
  const { store, attempts, stored } = createStore(() => undefined, { ...PAUSES, pauseMs: 60_000 });
  void store.keep(uuid, latest);
  while (stored() === null) await new Promise(setImmediate);
  await new Promise(setImmediate);
  latest.record = { ...latest.record, exitStatus: 0 };
  void store.keep(uuid, latest);
  await new Promise(setImmediate);
  assert.equal(attempts.length, 1);
  latest.record = { ...latest.record, script: 'boot/02-b', exitStatus: null };
  void store.keep(uuid, latest);
  for (let turn = 0; turn < 100 && attempts.length < 2; turn += 1) await new Promise(setImmediate);
  assert.equal(stored()?.script, 'boot/02-b');
});

void test('a guest that says much does not have the store written without a pause', async () => {
  const latest = { record: newRecord('0') };
  const at: number[] = [];
  const { store, stored } = createStore((attempt) => {
    at.push(performance.now());
    if (attempt < 4) latest.record = newRecord(String(attempt));
  });
  await store.keep(uuid, latest);
  assert.equal(stored()?.run, '3');
  const pauses = at.slice(1).map((ms, index) => ms - (at[index] ?? 0));
  assert.equal(pauses.length, 3);
  // Timers of Node round to whole milliseconds.
  for (const ms of pauses) assert.ok(ms >= PAUSES.pauseMs - 2, `${ms} ms`);
});
