import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSealedStore, ringOf } from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';
import { testStoreContract } from './store-contract.ts';

const key = randomBytes(32);
let server: RedisServer;
let redis: Redis;
let count = 0;
before(async () => {
  server = await startRedis({ appendOnly: true });
  redis = new Redis({ path: server.socket });
});
after(async () => {
  redis.disconnect();
  await server.stop();
});

const open = async (prefix: string, with_ = key): Promise<Store> =>
  createSealedStore(
    await createRedisStore({
      server: { url: `unix:${server.socket}` },
      prefix,
      logger: silentLogger,
    }),
    () => ringOf(with_),
  );
const isRefusal = (error: unknown): boolean => isAppError(error, 'STORE_KEY');

testStoreContract({
  name: 'sealed redis',
  open: async () => {
    const prefix = `{t${++count}}`;
    return { store: await open(prefix), reopen: () => open(prefix) };
  },
});

test('sealed: neither the server nor its files have the value of a record', async () => {
  const store = await open('{sealed}');
  const value = randomBytes(20).toString('hex');
  await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: { value } }]);
  const kept = await redis.hget('{sealed}:c:a', 'x');
  assert.ok(kept !== null && !kept.includes(value) && !Buffer.from(kept, 'base64').includes(value));
  await redis.save();
  const directory = dirname(server.socket);
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile(),
  );
  assert.ok(files.length >= 2);
  for (const { parentPath, name } of files)
    assert.ok(!(await readFile(join(parentPath, name))).includes(value), name);
  await store.close();
});

test('sealed: a record of another key, in another place, changed or made up is refused', async () => {
  const store = await open('{tamper}');
  const stranger = await open('{tamper}', randomBytes(32));
  await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 'own' }]);
  await assert.rejects(stranger.get('a', 'x'), isRefusal);
  const kept = (await redis.hget('{tamper}:c:a', 'x')) ?? '';
  await redis.hset('{tamper}:c:a', 'y', kept);
  await assert.rejects(store.get('a', 'y'), isRefusal);
  const [own, foreign] = await store.list('a');
  assert.deepEqual([own?.value, own?.problem], ['own', undefined]);
  assert.deepEqual([foreign?.id, foreign?.value], ['y', undefined]);
  assert.match(foreign?.problem ?? '', /a\/y is not sealed with this cluster key/);
  await redis.hset('{tamper}:c:b', 'x', kept);
  await assert.rejects(store.get('b', 'x'), isRefusal);
  const changed = kept.replace(/[A-Za-z](?=[^A-Za-z]*"$)/, (letter) =>
    letter === 'A' ? 'B' : 'A',
  );
  for (const text of [changed, '1\n"own"', '1\n{"own":1}', '1\n""', '1\n"AAAA"']) {
    await redis.hset('{tamper}:c:a', 'z', text);
    await assert.rejects(store.get('a', 'z'), isRefusal, text);
  }
  assert.equal((await store.get('a', 'x'))?.value, 'own');
  await Promise.all([store.close(), stranger.close()]);
});

test('sealed: who watches a collection is told of what others commit there, also over a restart of the server', async () => {
  const own = await startRedis({ appendOnly: true });
  const openOwn = (): Promise<Store> =>
    createRedisStore({ server: { url: `unix:${own.socket}` }, logger: silentLogger }).then(
      (store) => createSealedStore(store, () => ringOf(key)),
    );
  const [store, other] = [await openOwn(), await openOwn()];
  let told = Promise.withResolvers<undefined>();
  const next = async (): Promise<void> => {
    await told.promise;
    told = Promise.withResolvers();
  };
  try {
    const { end } = store.watch('a', () => told.resolve(undefined));
    await next(); // it listens
    await other.commit([{ collection: 'a', id: 'x', expected: 'any', value: 1 }]);
    await next();
    await own.restart();
    await next();
    await other.commit([{ collection: 'a', id: 'x', expected: 'any', value: undefined }]);
    await next();
    end();
  } finally {
    await Promise.all([store.close(), other.close()]);
    await own.stop();
  }
});
