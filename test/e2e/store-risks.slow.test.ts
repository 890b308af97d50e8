import assert from 'node:assert/strict';
import { mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { doctorReport, type DoctorFinding } from '#shared/contract/api.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { ask, assertRefused, infoOf, statusOf, succeed } from './support/ask-nodes.ts';
import { type GatedJobs, gateJobs } from './support/gated-jobs.ts';

/** A node whose real Redis has a full disk, or evicts records. */
interface Scene {
  readonly lab: Lab;
  readonly redis: RedisServer;
  readonly client: Redis;
  readonly jobs: GatedJobs;
}

async function begin(t: TestContext, redis: RedisServer): Promise<Scene> {
  const lab = await createLab('gnt-sr');
  const client = new Redis({ path: redis.socket });
  t.after(async () => {
    await lab.dispose();
    client.disconnect();
    await redis.stop();
  });
  await succeed(lab, 'gnt-cluster', 'init', '--store', `unix:${redis.socket}`, 'gnt.example.com');
  await lab.startNode();
  return { lab, redis, client, jobs: await gateJobs(lab) };
}

async function finding(lab: Lab, check: string): Promise<DoctorFinding | undefined> {
  const { findings } = await ask(lab, '/v1/doctor', doctorReport);
  return findings.find((one) => one.check === check);
}

const kindsOf = (name: string, jobs: GatedJobs): readonly object[] => [
  { opcode: 'INSTANCE_SET_PARAMS', name, tags: ['one'] },
  { opcode: 'INSTANCE_RENAME', name, newName: 'better.example.com' },
  { opcode: 'INSTANCE_RENAME', name: 'better.example.com', newName: name },
  { opcode: 'BACKUP_EXPORT', name },
  jobs.createOf('made.example.com', { install: false }),
  { opcode: 'INSTANCE_REMOVE', name: 'made.example.com' },
  { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
];

/** Fills a file system to its last byte. */
async function fill(dir: string): Promise<void> {
  await writeFile(join(dir, 'filler'), Buffer.alloc(64 * 1024 * 1024)).catch(() => undefined);
}

test('while the disk of Redis is full nothing is taken, what runs waits, and all goes on with room', async (t) => {
  const dir = await mkdtemp('/tmp/gnt-redis-disk-');
  await run('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'gnt-test-sr', dir]);
  const more = ['--dir', dir, '--appendfsync', 'everysec'];
  const { lab, client, jobs } = await begin(t, await startRedis({ appendOnly: true, more }));
  t.after(async () => {
    await run('umount', ['-l', dir]);
    await rmdir(dir);
  });
  const name = 'good.example.com';
  const running = await jobs.begin(name);
  await fill(dir);
  // Redis keeps the last write in memory. The next write finds the full disk.
  while (!(await client.info('persistence')).includes('aof_last_write_status:err')) {
    await client.set('other', 'x').catch(() => undefined);
    await sleep(50);
  }
  assert.match((await finding(lab, 'store-risks'))?.message ?? '', /aof_last_write_status/);
  for (const opcode of kindsOf(name, jobs)) assert.equal(await statusOf(lab, opcode), 'STORE_UNAVAILABLE', JSON.stringify(opcode)); // prettier-ignore
  await jobs.open(name);
  await sleep(1500); // it ends meanwhile, and cannot be written
  await rm(join(dir, 'filler'));
  assert.equal((await jobs.ended(running)).error, null);
  for (;;) {
    const { installState } = await infoOf(lab, name);
    if (installState === 'installed') break;
    await sleep(50);
  }
  for (const opcode of kindsOf(name, jobs))
    assert.equal(await statusOf(lab, opcode), 'success', JSON.stringify(opcode));
  assert.equal((await finding(lab, 'store-risks'))?.level, 'warning');
  for (const { name: left } of await ask(lab, '/v1/instances', instanceInfo.array()))
    assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name: left }), 'success');
  assert.equal(await lab.stopNode(), 0);
  assert.deepEqual(await lab.findLeftovers(), []);
});

test('a Redis that evicts is refused for a new cluster, and told of an old one with what is gone', async (t) => {
  const { lab, redis, client, jobs } = await begin(t, await startRedis({ appendOnly: true }));
  const name = 'good.example.com';
  assert.equal(await statusOf(lab, jobs.createOf(name, { install: false })), 'success');
  const { uuid } = await infoOf(lab, name);
  const running = await jobs.begin('running.example.com');
  const events = askSocket(lab.paths.nodedSocket, `/v1/jobs/${running}/events`);
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await client.config('SET', 'maxmemory', String(2 ** 30));
  assert.match((await finding(lab, 'store-risks'))?.message ?? '', /evicts records/);
  // Without the right to read the settings of Redis, only its risks are unknown.
  await client.call('ACL', 'SETUSER', 'default', '-info');
  assert.match(
    (await finding(lab, 'store-risks'))?.message ?? '',
    /it is unknown whether .*NOPERM/,
  );
  await client.call('ACL', 'SETUSER', 'default', '+info');
  const words = ['init', '--store', `unix:${redis.socket}?replicas=1`, 'other.example.com'];
  const other = await createLab('gnt-sr2');
  t.after(() => other.dispose());
  await client.config('SET', 'maxmemory', '1');
  while ((await client.dbsize()) > 0) await sleep(20);
  await client.config('SET', 'maxmemory', '0');
  assertRefused(await other.run('gnt-cluster', words), 2, 'HOST_PREREQUISITE', /has evicted \d+ keys/); // prettier-ignore
  assert.match((await finding(lab, 'store-risks'))?.message ?? '', /has evicted \d+ keys/);
  const nobodys = await finding(lab, 'orphaned-disks');
  assert.equal(nobodys?.level, 'warning');
  assert.ok(nobodys.message.includes(uuid), nobodys.message);
  assert.equal((await finding(lab, 'store'))?.message, 'cannot read the record cluster/cluster: it does not exist'); // prettier-ignore
  await jobs.open('running.example.com');
  assert.match((await events).body, /"INSTANCE_NOT_FOUND"/);
  assert.equal((await lab.stopNode()) ?? 1, 0);
  const started = await lab.run('gnt-noded', [], { timeoutMs: 60_000 });
  assertRefused(started, 2, 'CONFLICT', /has no cluster/);
  assert.deepEqual(await lab.findLeftovers(), []);
});
