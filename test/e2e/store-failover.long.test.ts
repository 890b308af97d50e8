import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import {
  startSentinels,
  type SentinelGroup,
  type SentinelRedis,
} from '../noded/support/redis-sentinel.ts';
import { ask, infoOf, jobsOf, statusOf, succeed } from './support/ask-nodes.ts';
import { type GatedJobs, gateJobs } from './support/gated-jobs.ts';

/**
 * A node with a real Redis, a replica and real Sentinels. A failover happens while the replica
 * lacks writes of the master.
 */

/** Longer than the store's wait for a replica. */
const REFUSED_AFTER_MS = 8000;

let group: SentinelGroup;
let lab: Lab;
let jobs: GatedJobs;

before(async () => {
  group = await startSentinels();
  lab = await createLab('gnt-sf');
  const store = `${group.url}?replicas=1`;
  await succeed(lab, 'gnt-cluster', 'init', '--store', store, 'gnt.example.com');
  await lab.startNode();
  jobs = await gateJobs(lab);
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await group.stop();
  assert.deepEqual(leftovers, []);
});

/** Kills the master with writes that its replica lacks. The replica is promoted. */
async function failOver(master: SentinelRedis, replica: SentinelRedis): Promise<void> {
  await master.kill();
  replica.resume();
  const promoted = await group.master();
  assert.equal(promoted.port, replica.port);
  master.start(promoted);
  await group.settled();
}

test('what was told outlasts a failover; what only the master had was never told', async () => {
  const running = await jobs.begin('running.example.com');
  const told: [string, number][] = [];
  const refused: string[] = [];
  const [master, replica] = [await group.master(), await group.replica()];
  for (let index = 0; index < 4; index += 1) {
    const name = `some${index}.example.com`;
    if (index === 2) replica.pause();
    const { status, id } = await jobs.submit(jobs.createOf(name, { install: false }));
    if (status === 202) told.push([name, id]);
    else refused.push(name);
  }
  assert.deepEqual(refused, ['some2.example.com', 'some3.example.com']);
  await failOver(master, replica);
  await jobs.open('running.example.com');
  assert.equal((await jobs.ended(running)).status, 'success');
  assert.equal((await infoOf(lab, 'running.example.com')).installState, 'installed');
  for (const [name, id] of told) {
    assert.equal((await jobs.ended(id)).status, 'success');
    assert.equal((await infoOf(lab, name)).name, name);
  }
  const names = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
  for (const name of refused) assert.ok(!names.includes(name), name);
});

/** Retries until the node has found the new master, which takes longer than the Sentinels need. */
async function statusWhenAnswered(opcode: object): Promise<string> {
  for (;;) {
    const status = await statusOf(lab, opcode);
    if (status !== 'STORE_UNAVAILABLE') return status;
    await sleep(100);
  }
}

test('each kind of job goes on over a failover', async () => {
  const name = 'some0.example.com';
  const kinds: readonly object[] = [
    { opcode: 'INSTANCE_SET_PARAMS', name, tags: ['one'] },
    { opcode: 'INSTANCE_RENAME', name: 'some1.example.com', newName: 'else.example.com' },
    { opcode: 'INSTANCE_REMOVE', name: 'running.example.com' },
    { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
    jobs.createOf('late.example.com', { install: false }),
  ];
  const [master, replica] = [await group.master(), await group.replica()];
  const submitting = kinds.map((opcode) => jobs.submit(opcode));
  const failing = failOver(master, replica);
  const answers = await Promise.all(submitting);
  await failing;
  for (const [index, { status, id }] of answers.entries()) {
    const opcode = kinds[index] ?? {};
    // A refused operation left nothing; an accepted one was done.
    if (status === 202) assert.equal((await jobs.ended(id)).error, null, JSON.stringify(opcode));
    else assert.equal(await statusWhenAnswered(opcode), 'success', JSON.stringify(opcode));
  }
  assert.deepEqual((await infoOf(lab, name)).tags, ['one']);
  while ((await jobsOf(lab)).some(({ endedAtMs }) => endedAtMs === null)) await sleep(100);
  const names = (await ask(lab, '/v1/instances', instanceInfo.array())).map((one) => one.name);
  assert.deepEqual(names, ['else.example.com', 'late.example.com', name]);
});

test('a command waits out a failover, says so once, and is one job', async () => {
  const name = 'some0.example.com';
  const [master, replica] = [await group.master(), await group.replica()];
  const isChange = (job: { summary: string }): boolean => /SET_PARAMS.*some0/.test(job.summary);
  const before = (await jobsOf(lab)).filter(isChange).map(({ id }) => id);
  // The refused write has reached the master, and reaches the replica when it continues.
  replica.pause();
  const modifying = lab.run('gnt-instance', ['modify', '--tags', 'waited', name]);
  await sleep(REFUSED_AFTER_MS);
  await failOver(master, replica);
  const { status, stderr } = await modifying;
  assert.equal(status, 0, stderr);
  assert.equal(stderr.match(/waiting for it/g)?.length, 1, stderr);
  assert.deepEqual((await infoOf(lab, name)).tags, ['waited']);
  // A refused job that reached the store anyway ends without a start.
  while ((await jobsOf(lab)).some(({ endedAtMs }) => endedAtMs === null)) await sleep(100);
  const made = (await jobsOf(lab)).filter((job) => isChange(job) && !before.includes(job.id));
  const begun = made.filter(({ startedAtMs }) => startedAtMs !== null);
  assert.deepEqual(begun.map(({ status }) => status), ['success']); // prettier-ignore
});
