import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { STORE_SCHEMA } from '#shared/store/encode.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { migrateSqlite } from '#shared/store/sqlite-schema.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';
import { type RedisServer, startRedis } from '../../noded/support/redis-server.ts';

/**
 * The released layouts of records, by version. A change of the layout needs a new version, or the
 * release before would misread it.
 */
const LAYOUTS = join(import.meta.dirname, '../../../fixtures/upgrade/layouts.json');
const PREFIX = '{layout}';
let directory = '';
let server: RedisServer;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-layout-'));
  server = await startRedis();
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

const layoutOf = async (engine: 'sqlite' | 'redis'): Promise<unknown> => {
  // The fixture's own shape.
  const layouts = JSON.parse(await readFile(LAYOUTS, 'utf8')) as Record<string, object>;
  return (layouts[STORE_SCHEMA] as Record<string, unknown> | undefined)?.[engine];
};

/** Writes a record that was changed, and deletes one. */
async function write(store: Store): Promise<void> {
  const key = { collection: 'things', id: 'one' };
  await store.commit([{ ...key, expected: 'absent', value: { n: 1 }, stamp: 5 }]);
  await store.commit([{ ...key, expected: 1, value: { n: 2 }, stamp: 6 }]);
  await store.commit([{ ...key, id: 'gone', expected: 'absent', value: 1 }]);
  await store.commit([{ ...key, id: 'gone', expected: 1, value: undefined }]);
  await store.close();
}

async function writeSqlite(name: string): Promise<string> {
  const path = join(directory, name);
  await write(createSqliteStore({ path }));
  return path;
}

test('sqlite: what is written now lies as its version says', async () => {
  const database = new DatabaseSync(await writeSqlite('now.sqlite'), { readOnly: true });
  const all = (sql: string): unknown[] =>
    database.prepare(sql).all().flatMap((row) => Object.values(row)); // prettier-ignore
  const found = {
    version: all('PRAGMA user_version')[0],
    application: all('PRAGMA application_id')[0],
    tables: all('SELECT sql FROM sqlite_schema ORDER BY name').map((sql) =>
      String(sql).replaceAll(/\s+/g, ' '),
    ),
    records: all('SELECT * FROM records'),
  };
  database.close();
  assert.equal(found.version, STORE_SCHEMA);
  assert.deepEqual(found, await layoutOf('sqlite'));
});

test('sqlite: the version before the one that is written now refuses it, and leaves it', async () => {
  const path = await writeSqlite('before.sqlite');
  const bytes = await readFile(path);
  const database = new DatabaseSync(path);
  // Only the number of steps counts.
  const steps = Array.from({ length: STORE_SCHEMA - 1 }, () => 'not to be run');
  assert.throws(
    () => migrateSqlite(database, path, systemClock, steps),
    (error) =>
      isAppError(error, 'STORE_VERSION') && error.message.includes(`version ${STORE_SCHEMA}`),
  );
  database.close();
  assert.deepEqual(await readFile(path), bytes);
});

test('redis: what is written now lies as its version says', async () => {
  await write(await open());
  const redis = new Redis({ path: server.socket });
  const found: Record<string, unknown> = {};
  for (const key of (await redis.keys(`${PREFIX}:*`)).sort()) {
    const type = await redis.type(key);
    // The server numbers the entries of a log by its clock.
    if (type === 'stream')
      found[key] = (await redis.xrange(key, '-', '+')).map(([, fields]) => fields);
    else found[key] = type === 'hash' ? await redis.hgetall(key) : await redis.get(key);
  }
  redis.disconnect();
  assert.equal(found[`${PREFIX}:records`], String(STORE_SCHEMA));
  assert.deepEqual(found, await layoutOf('redis'));
});

for (const what of ['schema', 'records'] as const) {
  test(`redis: ${what} after what is written now are refused, and left`, async (t) => {
    await (await open()).close();
    const redis = await withKey(t, what, STORE_SCHEMA + 1);
    const keys = await redis.keys('*');
    const dump = (): Promise<unknown[]> => Promise.all(keys.map((one) => redis.dumpBuffer(one)));
    const before = await dump();
    await assert.rejects(open(), isRefused);
    assert.deepEqual(await dump(), before);
    assert.equal((await redis.keys('*')).length, keys.length);
  });
}

test('redis: what an earlier release has open goes on, and its next start is refused', async (t) => {
  const store = await open();
  await withKey(t, 'records', STORE_SCHEMA + 1);
  await store.commit([{ collection: 'things', id: 'two', expected: 'absent', value: 2 }]);
  await store.close();
  await assert.rejects(open(), isRefused);
});

const isRefused = (error: unknown): boolean =>
  isAppError(error, 'STORE_VERSION') && error.message.includes(`version ${STORE_SCHEMA + 1}`);

/** Keeps the key until the test has ended. */
async function withKey(t: TestContext, name: string, value: number): Promise<Redis> {
  const redis = new Redis({ path: server.socket });
  const key = `${PREFIX}:${name}`;
  const former = await redis.getset(key, String(value));
  t.after(async () => {
    if (former !== null) await redis.set(key, former);
    redis.disconnect();
  });
  return redis;
}

function open(): Promise<Store> {
  const url = `unix:${server.socket}`;
  return createRedisStore({ server: { url }, prefix: PREFIX, logger: silentLogger });
}
