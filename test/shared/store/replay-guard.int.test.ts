import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openReplayGuard, type ReplayGuard } from '#shared/store/replay-guard.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import {
  createSealedStore,
  makeClusterKey,
  ringOf,
  type SealedStore,
} from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';

/** An attacker with write access to Redis, against a node that has seen the records. */
const directory = mkdtempSync(join(tmpdir(), 'gnt-seen-'));
const ring = ringOf(makeClusterKey());
let server: RedisServer;
let redis: Redis;
let count = 0;
before(async () => {
  server = await startRedis({ appendOnly: false });
  redis = new Redis({ path: server.socket });
});
after(async () => {
  redis.disconnect();
  await server.stop();
  rmSync(directory, { recursive: true });
});

const openMarks = (name: string, clock = systemClock): ReplayGuard =>
  openReplayGuard({ path: join(directory, name), clock, logger: silentLogger });

interface Bench {
  readonly prefix: string;
  open(node: string): Promise<SealedStore>;
  /** Returns a function that restores the present value in Redis. */
  keep(collection: string, id: string): Promise<() => Promise<unknown>>;
}

function newBench(): Bench {
  count += 1;
  const prefix = `{seen${count}}`;
  const openPlain = (): Promise<Store> =>
    createRedisStore({ server: { url: `unix:${server.socket}` }, prefix, logger: silentLogger });
  return {
    prefix,
    open: async (node) =>
      createSealedStore(await openPlain(), () => ring, openMarks(`${count}-${node}`)),
    keep: async (collection, id) => {
      const key = `${prefix}:c:${collection}`;
      const kept = (await redis.hget(key, id)) ?? '';
      return () => redis.hset(key, id, kept);
    },
  };
}

const write = async (
  store: Store,
  id: string,
  value: unknown,
  collection = 'os',
): Promise<void> => {
  const found = await store.get(collection, id).catch(() => undefined);
  const expected = found?.revision ?? 'absent';
  await store.commit([{ collection, id, expected, value }]);
};

test('an old record that is put back is refused by name, also with a higher revision; the others are read', async () => {
  const bench = newBench();
  const store = await bench.open('a');
  await write(store, 'debian', { trusted: true });
  await write(store, 'other', 1);
  const old = await redis.hget(`${bench.prefix}:c:os`, 'debian');
  await write(store, 'debian', { trusted: false });
  const revived = (old ?? '').replace(/^\d+/, '99');
  for (const text of [old ?? '', revived]) {
    await redis.hset(`${bench.prefix}:c:os`, 'debian', text);
    await assert.rejects(store.get('os', 'debian'), { code: 'RECORD_REPLAYED' });
    const [debian, other] = await store.list('os');
    assert.match(
      debian?.problem ?? '',
      /os\/debian is older than the version that this node knows/,
    );
    assert.deepEqual([debian?.value, other?.value], [undefined, 1]);
    assert.deepEqual(await store.getSome('os', ['debian', String(other?.id)]), [debian, other]);
  }
  await store.close();
});

test('an old record of any kind is refused, also of one that nobody has thought of; but of a claim, a job, a counter', async (t) => {
  const bench = newBench();
  const store = await bench.open('a');
  t.after(() => store.close());
  const putBackIn = async (collection: string): Promise<unknown> => {
    await write(store, 'x', 'revoked', collection);
    const putBack = await bench.keep(collection, 'x');
    await write(store, 'x', 'new', collection);
    await putBack();
    return store.get(collection, 'x').then(
      (record) => record?.value,
      (error: unknown) => isAppError(error) && error.code,
    );
  };
  const guarded = ['cluster', 'os', 'nodes', 'removed-nodes', 'instances', 'profiles', 'renewals'];
  for (const collection of [...guarded, 'bootenvs', 'boot-templates', 'boot-params', 'of-tomorrow'])
    assert.equal(await putBackIn(collection), 'RECORD_REPLAYED', collection);
  for (const collection of ['claim-name', 'claim-ip', 'claim-mac', 'jobs', 'job-rings', 'counters'])
    assert.equal(await putBackIn(collection), 'revoked', collection);
});

test('what another node changed counts once it was seen, and over a restart', async () => {
  const bench = newBench();
  let a = await bench.open('a');
  const b = await bench.open('b');
  await write(a, 'debian', 1);
  const putBack = await bench.keep('os', 'debian');
  await write(b, 'debian', 2);
  assert.equal((await a.list('os'))[0]?.value, 2);
  await a.close();
  await putBack();
  a = await bench.open('a');
  await assert.rejects(a.get('os', 'debian'), { code: 'RECORD_REPLAYED' });
  const stranger = await bench.open('c');
  assert.equal((await stranger.get('os', 'debian'))?.value, 1);
  await Promise.all([a.close(), b.close(), stranger.close()]);
});

test('what was removed does not come back, unless it is made anew', async () => {
  const bench = newBench();
  const [a, b] = [await bench.open('a'), await bench.open('b')];
  for (const id of ['one', 'two', 'three']) await write(a, id, { key: id }, 'nodes');
  assert.equal((await b.list('nodes')).length, 3);
  const revive = await Promise.all(['one', 'two'].map((id) => bench.keep('nodes', id)));
  await a.commit([{ collection: 'nodes', id: 'one', expected: 'any', value: undefined }]);
  await redis.hdel(`${bench.prefix}:c:nodes`, 'two');
  assert.equal((await b.list('nodes')).length, 1);
  for (const putBack of revive) await putBack();
  await assert.rejects(a.get('nodes', 'one'), { code: 'RECORD_REPLAYED' });
  for (const id of ['one', 'two'])
    await assert.rejects(b.get('nodes', id), { code: 'RECORD_REPLAYED' });
  const c = await bench.open('c');
  await c.commit([{ collection: 'nodes', id: 'one', expected: 'any', value: { key: 'new' } }]);
  for (const store of [a, b])
    assert.deepEqual((await store.get('nodes', 'one'))?.value, { key: 'new' });
  await Promise.all([a.close(), b.close(), c.close()]);
});

test('an emptied store is no removal of all records: a backup of the newest is taken', async () => {
  const bench = newBench();
  const store = await bench.open('a');
  await write(store, 'one', 1);
  const putBack = await bench.keep('os', 'one');
  await redis.del(`${bench.prefix}:c:os`);
  assert.deepEqual(await store.list('os'), []);
  assert.equal(await store.get('os', 'one'), undefined);
  await putBack();
  assert.equal((await store.get('os', 'one'))?.value, 1);
  await store.close();
});

test('a clock that is set back, and one that is ahead, cost no record', async () => {
  const bench = newBench();
  const plain = await createRedisStore({
    ...{ server: { url: `unix:${server.socket}` }, prefix: bench.prefix, logger: silentLogger },
  });
  let now = 5_000_000_000_000;
  const clock = { ...systemClock, now: () => now };
  const ahead = createSealedStore(plain, () => ring, openMarks(`${count}-ahead`, clock));
  const store = await bench.open('b');
  await write(ahead, 'x', 1);
  await write(store, 'x', 2);
  now = 1;
  await write(ahead, 'x', 3);
  assert.equal((await store.get('os', 'x'))?.value, 3);
  await Promise.all([ahead.close(), store.close()]);
});

test('what a node with a clock behind makes anew, or writes over, is no replay to the others', async (t) => {
  const bench = newBench();
  const openAt = async (name: string, now: number): Promise<SealedStore> => {
    const plain = await createRedisStore({
      ...{ server: { url: `unix:${server.socket}` }, prefix: bench.prefix, logger: silentLogger },
    });
    const clock = { ...systemClock, now: () => now };
    const store = createSealedStore(plain, () => ring, openMarks(`${count}-${name}`, clock));
    t.after(() => store.close());
    return store;
  };
  const now = Date.now();
  const [ahead, behind] = [await openAt('ahead', now + 60_000), await openAt('behind', now)];
  const writeAny = (store: Store, value: unknown): Promise<unknown> =>
    store.commit([{ collection: 'bootenvs', id: 'x', expected: 'any', value }]);
  await writeAny(ahead, 1);
  assert.equal((await ahead.get('bootenvs', 'x'))?.value, 1);
  await writeAny(behind, 2);
  assert.equal((await ahead.get('bootenvs', 'x'))?.value, 2);
  await writeAny(ahead, undefined);
  const [revision] = await behind.commit([
    { collection: 'bootenvs', id: 'x', expected: 'absent', value: 3 },
  ]);
  const found = await ahead.get('bootenvs', 'x');
  assert.deepEqual([found?.value, found?.revision], [3, revision]);
  assert.ok((revision ?? 0) > 2, 'a revision of the one that was deleted');
});

test('a stamp of another year in the store is told, and taken by nobody', async (t) => {
  const bench = newBench();
  const store = await bench.open('a');
  t.after(() => store.close());
  await write(store, 'x', 1);
  await redis.hset(`${bench.prefix}:f:os`, 'stamp', String(Number.MAX_SAFE_INTEGER));
  await assert.rejects(write(store, 'y', 1), { code: 'STORE_KEY', message: /another year/ });
  await write(store, 'x', 2);
  await redis.del(`${bench.prefix}:f:os`);
  await write(store, 'y', 1);
  assert.equal((await store.get('os', 'y'))?.value, 1);
});

test('readers that overlap with writers never take a change for a replay', async (t) => {
  const bench = newBench();
  const [a, b] = [await bench.open('a'), await bench.open('b')];
  t.after(() => Promise.all([a.close(), b.close()]));
  for (const id of ['x', 'y']) await write(a, id, 0);
  const change = async (store: SealedStore, id: string): Promise<void> => {
    for (let round = 0; round < 100; round += 1) {
      const found = await store.get('os', id);
      const expected = found?.revision ?? 'absent';
      const value = round % 10 === 9 ? undefined : round;
      await store.commit([{ collection: 'os', id, expected, value }]).catch(() => undefined);
    }
  };
  const read = async (store: SealedStore): Promise<void> => {
    for (let round = 0; round < 200; round += 1)
      for (const listed of [await store.list('os'), await store.getSome('os', ['x', 'y'])])
        for (const { problem } of listed) assert.equal(problem, undefined);
  };
  await Promise.all(
    [a, a, b].flatMap((store) => [
      change(store, 'x'),
      change(store, 'y'),
      read(store),
      read(store),
    ]),
  );
});

test('records of before there were stamps are read, and can be replaced once', async () => {
  const bench = newBench();
  const store = await bench.open('a');
  assert.equal(statSync(join(directory, `${count}-a`)).mode & 0o777, 0o600);
  const judged = openMarks('old');
  assert.equal(judged.judge({ collection: 'os', id: 'x', stamp: 0 }, judged.version), 'current');
  judged.note([{ collection: 'os', id: 'x', stamp: 0 }]);
  assert.equal(judged.judge({ collection: 'os', id: 'x', stamp: 0 }, judged.version), 'current');
  judged.note([{ collection: 'os', id: 'x', stamp: 7 }]);
  assert.equal(judged.judge({ collection: 'os', id: 'x', stamp: 0 }, judged.version), 'replayed');
  judged.close();
  await store.close();
});

test('10,000 records cost a reader little more than their seals', async () => {
  const marks = openMarks('many');
  const records = Array.from({ length: 10_000 }, (_, index) => ({
    ...{ collection: 'instances', id: `i${index}`, stamp: index + 1 },
  }));
  const started = performance.now();
  marks.note(records);
  const asked = marks.version;
  for (const record of records) assert.equal(marks.judge(record, asked), 'current');
  marks.note(records);
  // Half a second on a busy host; 40 ms on an idle one.
  assert.ok(performance.now() - started < 2000);
  marks.close();
});
