import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { instanceInfo } from '#shared/contract/instance.ts';
import { STORE_SCHEMA } from '#shared/store/encode.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { findViolations } from '../chaos/find-violations.ts';
import { startRedis } from '../noded/support/redis-server.ts';
import { ask, assertRefused, infoOf, jobsOf, statusOf, succeed } from './support/ask-nodes.ts';

/** What an earlier release had written when it was killed; fixtures/upgrade/README.md tells how. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/upgrade/store.sqlite');

async function takeOver(lab: Lab): Promise<void> {
  await mkdir(dirname(lab.paths.storeFile), { recursive: true, mode: 0o755 });
  await copyFile(FIXTURE, lab.paths.storeFile);
}

test('a store of an earlier release is taken over, with its jobs and what was interrupted', async (t) => {
  const lab = await createLab('gnt-up');
  t.after(() => lab.dispose());
  await takeOver(lab);
  await lab.startNode();
  const names = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
  assert.deepEqual(names, ['web1.example.com', 'web3.example.com']);
  const { tags, installState, osParameters } = await infoOf(lab, 'web1.example.com');
  assert.deepEqual([tags, installState], [['old'], 'installed']);
  assert.match(JSON.stringify(osParameters), /somebody/);
  assert.equal((await infoOf(lab, 'web3.example.com')).install?.error?.code, 'JOB_INTERRUPTED');
  const jobs = await jobsOf(lab);
  assert.deepEqual(jobs.map(({ status }) => status).filter((status) => status !== 'success'), ['error']); // prettier-ignore
  assert.ok(jobs.length >= 7);
  const change = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1.example.com', tags: ['new'] };
  assert.equal(await statusOf(lab, change), 'success');
  for (const name of names)
    assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  assert.deepEqual(await findViolations(lab.paths), []);
  await lab.stopNode();
  assert.deepEqual(await lab.findLeftovers(), []);
});

test('a file of the next layout is refused by name, and left as it is', async (t) => {
  const lab = await createLab('gnt-dn');
  t.after(() => lab.dispose());
  await takeOver(lab);
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
