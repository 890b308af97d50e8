import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openJoins } from '#shared/store/redis-joins.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';

/* Keys of the store with values of another program or an attacker. */

let server: RedisServer;
let redis: Redis;
before(async () => {
  server = await startRedis();
  redis = new Redis({ path: server.socket });
});
after(async () => {
  redis.disconnect();
  await server.stop();
});

const TYPES: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
  string: (key) => redis.set(key, 'x'),
  list: (key) => redis.rpush(key, 'x'),
  set: (key) => redis.sadd(key, 'x'),
  'sorted set': (key) => redis.zadd(key, 1, 'x'),
  hash: (key) => redis.hset(key, 'x', 'x'),
  stream: (key) => redis.xadd(key, '*', 'x', 'x'),
};
const write = (collection: string, id: string, given: Partial<Write> = {}): Write => {
  return { collection, id, expected: 'any', value: 1, ...given };
};

let count = 0;
async function openStore(t: TestContext) {
  const prefix = `{broken${++count}}`;
  const store = await open(prefix);
  t.after(() => store.close());
  await store.commit([write('good', 'x', { stamp: 5 }), write('bad', 'x', { stamp: 5 })]);
  return { store, prefix };
}
const open = (prefix: string) =>
  createRedisStore({ server: { url: `unix:${server.socket}` }, prefix, logger: silentLogger });

/** Rejects with an error that names the key, not with that of an unavailable store. */
async function assertNames(asking: Promise<unknown>, key: string, what: string): Promise<void> {
  await assert.rejects(asking, (error) => {
    assert.ok(isAppError(error, 'RECORD_UNREADABLE'), `${what}: ${String(error)}`);
    assert.ok(error.message.includes(key), `${what}: ${error.message}`);
    return true;
  });
}

const READS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  get: (store) => store.get('bad', 'x'),
  getSome: (store) => store.getSome('bad', ['x']),
  list: (store) => store.list('bad'),
  scan: (store) => Array.fromAsync(store.scan('bad')),
  ids: (store) => store.ids('bad'),
};

test('a collection of another type is an error that names its key', async (t) => {
  for (const [type, make] of Object.entries(TYPES)) {
    if (type === 'hash') continue;
    const { store, prefix } = await openStore(t);
    const key = `${prefix}:c:bad`;
    await redis.del(key);
    await make(key);
    for (const [how, read] of Object.entries(READS))
      await assertNames(read(store), key, `${type} ${how}`);
    assert.equal((await store.get('good', 'x'))?.value, 1);
  }
});

test('a commit that meets a key of another type writes nothing at all', async (t) => {
  for (const [kind, right] of [
    ['c', 'hash'],
    ['l', 'stream'],
    ['f', 'hash'],
  ] as const)
    for (const [type, make] of Object.entries(TYPES)) {
      if (type === right) continue;
      const { store, prefix } = await openStore(t);
      const key = `${prefix}:${kind}:bad`;
      await redis.del(key);
      await make(key);
      for (const value of [2, undefined]) {
        const writes = [
          write('good', 'x', { value, stamp: 6 }),
          write('bad', 'x', { value, stamp: 6 }),
        ];
        await assertNames(store.commit(writes), key, `${kind} ${type}`);
        assert.equal((await store.get('good', 'x'))?.value, 1, `${kind} ${type}`);
      }
    }
});

test('a log that takes no more entries does not halve a commit', async (t) => {
  const { store, prefix } = await openStore(t);
  const key = `${prefix}:l:bad`;
  await redis.xadd(key, '18446744073709551615-18446744073709551615', 'id', 'x');
  await assertNames(
    store.commit([write('good', 'x', { value: 2 }), write('bad', 'x')]),
    key,
    'full',
  );
  assert.equal((await store.get('good', 'x'))?.value, 1);
});

test('watching a log of another type fails by name, and leaves other collections watched', async (t) => {
  const { store, prefix } = await openStore(t);
  const key = `${prefix}:l:bad`;
  await redis.del(key);
  await redis.set(key, 'x');
  const bad = store.watch('bad', () => undefined);
  await assertNames(bad.caughtUp(), key, 'watch');
  const told: unknown[] = [];
  const good = store.watch('good', (ids) => told.push(ids));
  await store.commit([write('good', 'y')]);
  await good.caughtUp();
  assert.ok(told.length > 0);
  bad.end();
  good.end();
});

test('a field without a revision, or with one that no store counted to, is a record that cannot be read', async (t) => {
  const { store, prefix } = await openStore(t);
  const key = `${prefix}:c:bad`;
  for (const field of [
    ...['', 'x', '1', '\n1', '-1\n1', '1.5\n1', '1e3\n1', 'NaN\n1', ' 1\n1', '0\n1', '٣\n1'],
    ...['99999999999999999999\n1', `${'9'.repeat(400)}\n1`],
  ]) {
    await redis.hset(key, 'x', field);
    const what = JSON.stringify(field.slice(0, 30));
    await assertNames(store.get('bad', 'x'), 'bad/x', what);
    for (const how of ['getSome', 'list', 'scan'] as const) {
      const [found] = ((await READS[how]?.(store)) as unknown[]).flat() as { problem?: string }[];
      assert.match(found?.problem ?? '', /bad\/x/, `${what} ${how}`);
    }
    await assertNames(store.commit([write('bad', 'x', { expected: 1 })]), key, what);
  }
});

test('a floor with words and numbers that count nothing stops no commit for good', async (t) => {
  for (const revision of ['x', 'nan', 'inf', '1e300', '-5', '0x10', '9'.repeat(30)]) {
    const { store, prefix } = await openStore(t);
    await redis.hset(`${prefix}:f:bad`, 'revision', revision);
    await store.commit([write('bad', 'x', { value: undefined, stamp: 6 })]);
    const made = await store.commit([write('bad', 'x', { expected: 'absent', stamp: 7 })]);
    assert.ok(Number.isSafeInteger(made[0]), `${revision}: ${made[0]}`);
    assert.equal((await store.get('bad', 'x'))?.value, 1, revision);
    await store.commit([write('bad', 'x', { expected: made[0] ?? 0, stamp: 8 })]);
  }
});

test('a version of the store of another type, or of megabytes, is named in a short message', async (t) => {
  for (const name of ['schema', 'records'])
    for (const [type, make] of Object.entries(TYPES)) {
      if (type === 'string') continue;
      const { store, prefix } = await openStore(t);
      const key = `${prefix}:${name}`;
      await redis.del(key);
      await make(key);
      await assertNames(open(prefix), key, `${name} ${type}`);
      if (name === 'schema') await assertNames(store.commit([write('good', 'x')]), key, type);
    }
  const { store, prefix } = await openStore(t);
  await redis.set(`${prefix}:schema`, '9'.repeat(2 ** 20));
  for (const ask of [() => open(prefix), () => store.commit([write('good', 'x')])])
    await assert.rejects(
      ask,
      (error) => isAppError(error, 'STORE_VERSION') && error.message.length < 500,
    );
});

test('a join token whose key has another type is named', async (t) => {
  const joins = await openJoins(`unix:${server.socket}`);
  t.after(() => joins[Symbol.asyncDispose]());
  await redis.rpush('{gnt}:join:abc', 'x');
  await assertNames(joins.look('abc'), '{gnt}:join:abc', 'join');
});

test('a record whose id is megabytes long does not fill the log', async (t) => {
  const { store, prefix } = await openStore(t);
  await redis.hset(`${prefix}:c:bad`, 'i'.repeat(2 ** 20), 'x');
  for (const { problem } of await store.list('bad')) assert.ok((problem ?? '').length < 1000);
});
