import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { STORE_SCHEMA } from '#shared/store/encode.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { findReleases } from '../lab/kept-releases.ts';
import { startRedis } from '../noded/support/redis-server.ts';
import { assertRefused, succeed } from './support/ask-nodes.ts';
import { assertTakenOver, bring } from './support/take-over.ts';

for (const { name, storeFile } of findReleases())
  test(`a store of an earlier release is taken over, with its jobs and what was interrupted (${name})`, (t) =>
    assertTakenOver(t, storeFile));

test('a file of the next layout is refused by name, and left as it is', async (t) => {
  const lab = await createLab('gnt-dn');
  t.after(() => lab.dispose());
  await bring(lab, findReleases()[0]?.storeFile ?? '');
  const store = new DatabaseSync(lab.paths.storeFile);
  store.exec(`PRAGMA journal_mode = WAL; PRAGMA user_version = ${STORE_SCHEMA + 1}`);
  store.close();
  const before = await readFile(lab.paths.storeFile);
  await assertNotStarted(lab);
  assert.deepEqual(await readFile(lab.paths.storeFile), before);
});

test("a cluster's store of the next layout is refused by name, and left as it is", async () => {
  await using used = new AsyncDisposableStack();
  const redis = await startRedis();
  used.defer(() => redis.stop());
  const lab = await createLab('gnt-dr');
  used.defer(() => lab.dispose());
  await succeed(lab, 'gnt-cluster', 'init', '--store', `unix:${redis.socket}`, 'gnt.example.com');
  await lab.startNode();
  await lab.stopNode();
  const client = new Redis({ path: redis.socket });
  used.defer(() => client.disconnect());
  await client.set('{gnt}:records', String(STORE_SCHEMA + 1));
  const records = async (): Promise<Record<string, Buffer>> => {
    const keys = (await client.keys('*')).sort();
    const dumps = keys.map(async (key) => [key, await client.dumpBuffer(key)] as const);
    return Object.fromEntries(await Promise.all(dumps));
  };
  const before = await records();
  assert.ok(Object.keys(before).length > 3);
  await assertNotStarted(lab);
  assert.deepEqual(await records(), before);
});

async function assertNotStarted(lab: Lab): Promise<void> {
  const started = await lab.run('gnt-noded', ['--node', 'node1.example.com'], {
    timeoutMs: 60_000,
  });
  assertRefused(started, 2, 'STORE_VERSION', new RegExp(`schema version ${STORE_SCHEMA + 1}`));
  assert.deepEqual(await lab.findLeftovers(), []);
}
