import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { ListedRecord } from '#shared/store/store.ts';
import { createCachedList } from '../../../noded/records/cached-list.ts';
import { ManualClock } from '../support/manual-clock.ts';

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-cached-list-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const reads = t.mock.method(store, 'list');
  const clock = new ManualClock();
  const list = createCachedList({
    ...{ store, clock, collection: 'things' },
    parse: ({ id, value }: ListedRecord) => `${id}=${String(value)}`,
  });
  const write = (id: string, value: unknown): Promise<unknown> =>
    store.commit([{ collection: 'things', id, expected: 'any', value }]);
  return { store, list, write, reads: () => reads.mock.callCount(), clock };
}

test('a collection is read once until it changes', async (t) => {
  const { list, write, reads } = await createLab(t);
  await write('a', 1);
  const first = await list();
  await list();
  const settled = reads();
  for (let time = 0; time < 5; time += 1) assert.deepEqual(await list(), ['a=1']);
  assert.equal(reads(), settled, 'nothing has changed');
  assert.ok(settled <= 2, `${settled} readings`);
  assert.deepEqual(first, ['a=1']);
  assert.equal(await list(), await list(), 'the same array');
  await write('b', 2);
  assert.deepEqual(await list(), ['a=1', 'b=2']);
  await write('a', undefined);
  assert.deepEqual(await list(), ['b=2']);
  assert.equal(reads(), settled + 2);
});

test('a change of another collection is not a reason to read', async (t) => {
  const { store, list, reads } = await createLab(t);
  await list();
  await list();
  const before = reads();
  await store.commit([{ collection: 'others', id: 'x', expected: 'any', value: 1 }]);
  await list();
  assert.equal(reads(), before);
});

test('a change while the collection is read is in the next list', async (t) => {
  const { store, list, write } = await createLab(t);
  await list();
  const real = store.list.bind(store);
  t.mock.method(store, 'list', async (collection: string) => {
    const read = await real(collection);
    t.mock.restoreAll();
    await write('late', 1);
    return read;
  });
  await write('early', 1);
  assert.deepEqual(await list(), ['early=1']);
  assert.deepEqual(await list(), ['early=1', 'late=1']);
});

test('a write that bypasses the program shows after an hour', async (t) => {
  const { list, write, reads, clock } = await createLab(t);
  await write('a', 1);
  await list();
  await list();
  const before = reads();
  clock.advance(3_599_000);
  await list();
  assert.equal(reads(), before);
  clock.advance(2000);
  await list();
  assert.equal(reads(), before + 1);
});

test('a record that cannot be parsed is an error of each call, until it can', async (t) => {
  const { store, write, clock } = await createLab(t);
  await write('a', 1);
  let isBroken = true;
  const list = createCachedList({
    ...{ store, clock, collection: 'things' },
    parse: ({ id }: ListedRecord) => {
      if (isBroken) throw new Error('broken');
      return id;
    },
  });
  await assert.rejects(list(), /broken/);
  await assert.rejects(list(), /broken/);
  isBroken = false;
  assert.deepEqual(await list(), ['a']);
});
