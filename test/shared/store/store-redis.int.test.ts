import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';
import { follow, testStoreContract } from './store-contract.ts';

let server: RedisServer;
let count = 0;
before(async () => {
  server = await startRedis();
});
after(() => server.stop());

const open = (prefix: string) =>
  createRedisStore({ server: { url: `unix:${server.socket}` }, prefix, logger: silentLogger });

testStoreContract({
  name: 'redis',
  open: async () => {
    const prefix = `{t${++count}}`;
    return { store: await open(prefix), reopen: () => open(prefix) };
  },
});

test('redis: data of a newer schema is refused by name, also when it changes under us', async (t) => {
  const store = await open('{newer}');
  const redis = new Redis({ path: server.socket });
  t.after(() => redis.disconnect());
  await redis.set('{newer}:schema', '7');
  const isRefusal = (error: unknown): boolean =>
    isAppError(error, 'STORE_VERSION') && error.message.includes('7');
  await assert.rejects(
    store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]),
    isRefusal,
  );
  await assert.rejects(open('{newer}'), isRefusal);
  await store.close();
});

test('redis: a server that is not there is named, without its password', async () => {
  const url = 'redis://user:hunter22@127.0.0.1:1/0';
  await assert.rejects(
    createRedisStore({ server: { url }, logger: silentLogger }),
    (error) =>
      isAppError(error, 'HOST_PREREQUISITE') &&
      error.message.includes('127.0.0.1:1') &&
      !error.message.includes('hunter22'),
  );
});

test('redis: changes of a time without a connection are told; where some may be lost, all is', async (t) => {
  const [store, other] = [await open('{feed}'), await open('{feed}')];
  const redis = new Redis({ path: server.socket });
  t.after(async () => {
    redis.disconnect();
    await Promise.all([store.close(), other.close()]);
  });
  const { told, until } = follow(store, 'a');
  const write = (id: string): Promise<unknown> =>
    other.commit([{ collection: 'a', id, expected: 'any', value: 1 }]);
  await until(() => told.length > 0);
  await write('before');
  await until(() => told.flat().includes('before'));
  const feed = async (): Promise<string> => {
    const clients = String(await redis.call('CLIENT', 'LIST'));
    return /^id=(\d+) .*cmd=(?:xread|xrange|xrevrange) /m.exec(clients)?.[1] ?? '';
  };
  const cut = async (): Promise<void> => {
    for (let id = await feed(); ; id = await feed()) {
      if (id !== '' && (await redis.call('CLIENT', 'KILL', 'ID', id)) === 1) return;
    }
  };
  await cut();
  await write('meanwhile');
  await until(() => told.flat().includes('meanwhile'));
  assert.deepEqual(told.filter((ids) => ids === null).length, 1, 'the beginning alone');
  await redis.del('{feed}:l:a');
  await cut();
  await until(() => told.filter((ids) => ids === null).length === 2);
});

test('redis: a client goes on after the server was killed and started again', async () => {
  const own = await startRedis({ appendOnly: true });
  const store = await createRedisStore({
    server: { url: `unix:${own.socket}` },
    logger: silentLogger,
  });
  try {
    await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 'kept' }]);
    await own.restart();
    assert.equal((await store.get('a', 'x'))?.value, 'kept');
    assert.deepEqual(
      await store.commit([{ collection: 'a', id: 'x', expected: 1, value: 'new' }]),
      [2],
    );
  } finally {
    await store.close();
    await own.stop();
  }
});

test('redis: a scan that outlives its server is refused, since its cursor leaves records out', async (t) => {
  const own = await startRedis({ appendOnly: true });
  t.after(() => own.stop());
  const store = await createRedisStore({
    server: { url: `unix:${own.socket}` },
    logger: silentLogger,
  });
  t.after(() => store.close());
  const writes = Array.from({ length: 1000 }, (_, n) => ({
    ...{ collection: 'a', id: `id${n}`, expected: 'absent', value: 'x' },
  }));
  await store.commit(writes as Parameters<typeof store.commit>[0]);
  const scan = store.scan('a')[Symbol.asyncIterator]();
  assert.equal((await scan.next()).done, false);
  await own.restart();
  await store.get('a', 'id0'); // it is connected again
  await assert.rejects(scan.next(), { code: 'STORE_UNAVAILABLE' });
  const ids = new Set<string>();
  for await (const slice of store.scan('a')) for (const { id } of slice) ids.add(id);
  assert.equal(ids.size, 1000);
});

test('redis: changes are published too, for nodes of the former release; who may not commits', async (t) => {
  const own = await startRedis();
  t.after(() => own.stop());
  const redis = new Redis({ path: own.socket });
  t.after(() => redis.disconnect());
  const ear = new Redis({ path: own.socket });
  t.after(() => ear.disconnect());
  const store = await createRedisStore({
    server: { url: `unix:${own.socket}` },
    logger: silentLogger,
  });
  t.after(() => store.close());
  const heard = new Promise((resolve) => {
    ear.on('message', (channel, id) => resolve([channel, id]));
  });
  await ear.subscribe('{gnt}:c:a');
  await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
  assert.deepEqual(await heard, ['{gnt}:c:a', 'x']);
  // Redis would end the connection, and the client would subscribe again.
  ear.disconnect();
  await redis.call('ACL', 'SETUSER', 'default', 'resetchannels');
  await store.commit([{ collection: 'a', id: 'x', expected: 1, value: 2 }]);
  assert.equal((await store.get('a', 'x'))?.value, 2);
});

test('redis: more changes at once than the log keeps are told as all', async (t) => {
  const store = await open('{burst}');
  t.after(() => store.close());
  const redis = new Redis({ path: server.socket });
  t.after(() => redis.disconnect());
  const { told, until } = follow(store, 'a');
  const write = (id: string): Promise<unknown> =>
    store.commit([{ collection: 'a', id, expected: 'any', value: 1 }]);
  await write('first');
  await until(() => told.flat().includes('first') || told.includes(null));
  const countAll = (): number => told.filter((ids) => ids === null).length;
  const before = countAll();
  // In one step, as for a node that was stopped meanwhile.
  const burst = `for n = 1, 11000 do
    redis.call('XADD', KEYS[1], 'MAXLEN', '=', 10000, '*', 'id', n) end`;
  await redis.eval(burst, 1, '{burst}:l:a');
  await write('last');
  await until(() => countAll() > before || told.flat().includes('last'));
  assert.equal(countAll(), before + 1);
});
