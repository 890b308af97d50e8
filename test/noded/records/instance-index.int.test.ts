import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems, type RecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSealedStore, makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { readIndexed } from '../../../noded/records/read-indexed.ts';
import { startInstanceIndex, type InstanceIndex } from '../../../noded/records/instance-index.ts';
import { startRedis, type RedisServer } from '../support/redis-server.ts';
import { instanceRecord } from '../support/records.ts';

let redis: RedisServer;
const key = makeClusterKey();
before(async () => {
  redis = await startRedis({ appendOnly: true });
});
after(() => redis.stop());

interface Indexed {
  readonly store: Store;
  readonly index: InstanceIndex;
  readonly problems: RecordProblems;
  /** Returns the number of reads of the whole collection. */
  readonly scans: () => number;
}

async function start(t: TestContext): Promise<Indexed> {
  const plain = await createRedisStore({
    server: { url: `unix:${redis.socket}` },
    logger: silentLogger,
  });
  const store = createSealedStore(plain, () => ringOf(key));
  const problems = createRecordProblems(silentLogger);
  let count = 0;
  const scan: Store['scan'] = (collection) => {
    count += 1;
    return store.scan(collection);
  };
  const index = startInstanceIndex({
    ...{ store: { ...store, scan }, problems, logger: silentLogger },
  });
  t.after(async () => {
    await index[Symbol.asyncDispose]();
    await store.close();
  });
  return { store, index, problems, scans: () => count };
}

const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const write = (store: Store, n: number, name: string | null): Promise<unknown> =>
  store.commit([
    {
      ...{ collection: 'instances', id: uuidOf(n), expected: 'any' },
      value: name === null ? undefined : instanceRecord({ name }, { uuid: uuidOf(n) }),
    },
  ]);
const names = async (index: InstanceIndex): Promise<readonly string[]> =>
  (await index.list()).map(({ name }) => name);

test('a list has each change that another node committed before it was asked for', async (t) => {
  const [near, far] = [await start(t), await start(t)];
  await write(far.store, 1, 'b.example.com');
  assert.deepEqual(await names(near.index), ['b.example.com']);
  for (let round = 0; round < 20; round += 1) {
    await write(far.store, 2, `a${round}.example.com`);
    assert.deepEqual(await names(near.index), [`a${round}.example.com`, 'b.example.com']);
  }
  await write(far.store, 1, null);
  assert.deepEqual(await names(near.index), ['a19.example.com']);
  assert.equal(near.scans(), 1, 'read whole at the beginning, and never again');
  await write(far.store, 2, null);
});

test('a record that cannot be read is set aside, and comes back with its next change', async (t) => {
  const { store, index, problems } = await start(t);
  await write(store, 1, 'good.example.com');
  await write(store, 2, 'other.example.com');
  const stranger = new Redis({ path: redis.socket });
  t.after(() => stranger.disconnect());
  assert.equal((await index.list()).length, 2);
  await stranger.hset('{gnt}:c:instances', uuidOf(2), '7\n"made without the key"');
  assert.equal((await index.list()).length, 2, 'nobody logged it');
  index.doubt(uuidOf(2));
  assert.deepEqual(await names(index), ['good.example.com']);
  assert.deepEqual(
    problems.list().map(({ id }) => id),
    [uuidOf(2)],
  );
  await write(store, 2, 'again.example.com');
  assert.deepEqual(await names(index), ['again.example.com', 'good.example.com']);
  assert.deepEqual(problems.list(), []);
  for (const n of [1, 2]) await write(store, n, null);
});

test('a list is refused while the store is away, and whole when it is back', async (t) => {
  const { store, index } = await start(t);
  await write(store, 1, 'before.example.com');
  assert.deepEqual(await names(index), ['before.example.com']);
  await redis.kill();
  await assert.rejects(index.list(), { code: 'STORE_UNAVAILABLE' });
  await redis.restart();
  const other = await start(t);
  await write(other.store, 2, 'after.example.com');
  for (;;) {
    const there = await names(index).catch(() => []);
    if (there.length === 2) break;
  }
  for (const n of [1, 2]) await write(other.store, n, null);
  assert.deepEqual(await names(index), []);
});

test('records that changed, and those of a whole list, are asked for a few dozen at once', async (t) => {
  const { store, index } = await start(t);
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  await index.list();
  const writes = Array.from({ length: 64 }, (_, n) => ({
    ...{ collection: 'instances', id: uuidOf(100 + n), expected: 'absent' as const },
    value: instanceRecord({ name: `of${n}.example.com` }, { uuid: uuidOf(100 + n) }),
  }));
  await client.config('RESETSTAT');
  await store.commit(writes);
  const meant = (await index.list()).filter(({ name }) => name.startsWith('of'));
  assert.equal(meant.length, 64);
  const instances = createInstanceRepository(
    store,
    systemClock,
    createRecordProblems(silentLogger),
  );
  const slices = await Array.fromAsync(
    readIndexed({ index, instances }, ({ name }) => name.startsWith('of')),
  );
  assert.deepEqual(
    slices.flat().map(({ name }) => name),
    meant.map(({ name }) => name),
  );
  const stats = await client.info('commandstats');
  const calls = (command: string): number =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  assert.ok(calls('hget') <= writes.length, `${calls('hget')} of HGET, of the commit alone`);
  assert.ok(calls('hmget') <= 16, `${calls('hmget')} of HMGET`);
  await store.commit(writes.map((write) => ({ ...write, expected: 'any', value: undefined })));
});
