import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { ask, infoOf, jobsOf, statusOf, succeed } from './support/ask-nodes.ts';
import { type GatedJobs, gateJobs } from './support/gated-jobs.ts';

/** A node with a paused real Redis, shorter and much longer than a command waits. */
const PAUSES_S = [5, 30, 120];
let redis: RedisServer;
let lab: Lab;
let jobs: GatedJobs;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  lab = await createLab('gnt-sp');
  await succeed(lab, 'gnt-cluster', 'init', '--store', `unix:${redis.socket}`, 'gnt.example.com');
  await lab.startNode();
  jobs = await gateJobs(lab);
});

after(async () => {
  redis.resume();
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

for (const pauseS of PAUSES_S) {
  test(`each kind of job comes to its end when the store stood still for ${pauseS} s`, async () => {
    const names = ['modify', 'rename', 'remove', 'export'].map((kind) => `${kind}${pauseS}.example.com`); // prettier-ignore
    for (const name of names) {
      await jobs.open(name);
      assert.equal(await statusOf(lab, jobs.createOf(name)), 'success');
    }
    const [modify = '', rename = '', remove = '', exported = ''] = names;
    const running = `running${pauseS}.example.com`;
    const installing = await jobs.begin(running);
    const made = `made${pauseS}.example.com`;
    const kinds: readonly object[] = [
      { opcode: 'INSTANCE_SET_PARAMS', name: modify, tags: ['one'] },
      { opcode: 'INSTANCE_RENAME', name: rename, newName: `new${rename}` },
      { opcode: 'INSTANCE_REMOVE', name: remove },
      { opcode: 'BACKUP_EXPORT', name: exported },
      { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
      jobs.createOf(made, { install: false }),
    ];
    const submitting = kinds.map((opcode) => jobs.submit(opcode));
    await sleep(10); // some are accepted, some in progress
    redis.pause();
    await jobs.open(running);
    await sleep(pauseS * 1000);
    redis.resume();
    const answers = await Promise.all(submitting);
    for (const [index, { status, id }] of answers.entries()) {
      const told = JSON.stringify(kinds[index]);
      // A refused operation left nothing; an accepted one was done.
      if (status === 202) assert.equal((await jobs.ended(id)).error, null, told);
      else assert.equal(await statusOf(lab, kinds[index] ?? {}), 'success', told);
    }
    assert.equal((await jobs.ended(installing)).error, null);
    while ((await infoOf(lab, running)).installState !== 'installed') await sleep(100);
    assert.deepEqual((await infoOf(lab, modify)).tags, ['one']);
    while ((await jobsOf(lab)).some(({ endedAtMs }) => endedAtMs === null)) await sleep(100);
    const there = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
    assert.deepEqual(there, [exported, made, modify, `new${rename}`, running].sort());
    for (const name of there)
      assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  });
}
