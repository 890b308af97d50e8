import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createPatientStore } from '#shared/store/patient-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';

const away = new AppError('STORE_UNAVAILABLE', 'the store does not answer');

/** Creates a real store that loses commits or their answers, as listed. */
async function createLossyStore(t: TestContext, losses: ('answer' | 'commit')[]): Promise<Store> {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-patient-'));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  return {
    ...store,
    commit: async (writes) => {
      const loss = losses.shift();
      if (loss !== 'commit') {
        const revisions = await store.commit(writes);
        if (loss === undefined) return revisions;
      }
      throw away;
    },
  };
}

const claim = (value: unknown) =>
  ({ collection: 'names', id: 'web1', expected: 'absent', value }) as const;

test('a commit is done once, whether it or its answer was lost', async (t) => {
  const store = await createLossyStore(t, ['answer', 'commit', 'commit']);
  const patient = createPatientStore(store, new AbortController().signal);
  assert.deepEqual(await patient.commit([claim({ a: 1, b: undefined })]), [1]);
  const change = { ...claim('two'), expected: 1 } as const;
  assert.deepEqual(await patient.commit([change]), [2]);
  assert.deepEqual(await store.get('names', 'web1'), { id: 'web1', revision: 2, value: 'two' });
  const drop = { ...claim(undefined), expected: 2 } as const;
  assert.deepEqual(await patient.commit([drop]), [0]);
});

test('what somebody else wrote meanwhile is a conflict, never ours', async (t) => {
  const store = await createLossyStore(t, ['commit']);
  const patient = createPatientStore(store, new AbortController().signal);
  const committing = patient.commit([claim('mine')]);
  await store.commit([claim('theirs')]);
  await assert.rejects(committing, { code: 'CONFLICT' });
});

test('the wait ends with its signal, with what the store said', async (t) => {
  const store = await createLossyStore(
    t,
    Array.from({ length: 1000 }, () => 'commit' as const),
  );
  const ending = new AbortController();
  const committing = createPatientStore(store, ending.signal).commit([claim(1)]);
  setImmediate(() => ending.abort());
  await assert.rejects(committing, away);
});

test('what may be written over is no sign of what became of a commit', async (t) => {
  const store = await createLossyStore(t, ['answer']);
  const counter = (value: number) =>
    ({ collection: 'counters', id: 'last', expected: 'any', value }) as const;
  const committing = createPatientStore(store, new AbortController().signal).commit([
    claim('mine'),
    counter(1),
  ]);
  await store.commit([counter(2)]);
  assert.deepEqual(await committing, [1, 2]);
  assert.equal((await store.get('counters', 'last'))?.value, 2);
});
