import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { instanceInfo } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { addOs, ask, infoOf, jobsOf, statusOf, succeed } from './support/ask-nodes.ts';

/**
 * A node with a real Redis that is killed, paused or made read-only. Scripts of an OS definition
 * choose the moments: each waits for a file.
 */
let redis: RedisServer;
let lab: Lab;
const gate = (name: string): string => join(lab.paths.root, `gate-${name}`);

before(async () => {
  redis = await startRedis({ appendOnly: true });
  lab = await createLab('gnt-so');
  await succeed(lab, 'gnt-cluster', 'init', '--store', `unix:${redis.socket}`, 'gnt.example.com');
  await lab.startNode();
  await addOs(lab, 'gated', [
    `echo begun >${lab.paths.root}/gate-$INSTANCE_NAME.begun`,
    `while [ ! -e ${lab.paths.root}/gate-$INSTANCE_NAME ]; do sleep 0.05; done`,
    '[ -z "${OSP_OWNER:-}" ] || exit 7',
  ]);
  await succeed(lab, 'gnt-os', 'trust', 'gated');
});

after(async () => {
  redis.resume();
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

const createOf = (name: string, more: object = {}): object => ({
  opcode: 'INSTANCE_CREATE', name, osType: 'gated', disks: [{ sizeBytes: 16 * 1024 * 1024 }],
  nics: [], start: false, ...more,
}); // prettier-ignore

async function submit(opcode: object): Promise<{ readonly status: number; readonly id: number }> {
  const { status, body } = await askSocket(lab.paths.nodedSocket, '/v1/jobs', {
    method: 'POST',
    body: opcode,
  });
  const id = z.object({ id: z.number() }).safeParse(JSON.parse(body)).data?.id ?? 0;
  return { status, id };
}

const isThere = async (path: string): Promise<boolean> =>
  readFile(path).then(() => true, () => false); // prettier-ignore

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(50);
}

async function begin(name: string, more: object = {}): Promise<number> {
  const { status, id } = await submit(createOf(name, more));
  assert.equal(status, 202);
  await until(() => isThere(`${gate(name)}.begun`));
  return id;
}

async function ended(id: number): Promise<JobRecord> {
  for (;;) {
    const job = (await jobsOf(lab)).find((one) => one.id === id);
    if (job !== undefined && job.endedAtMs !== null) return job;
    await sleep(100);
  }
}

const outcomes = (): Promise<string[]> => readdir(lab.paths.outcomesDir).catch((): string[] => []);

test('an installation that ends while there is no store is what it was when there is one', async () => {
  const [good, bad] = [await begin('good.example.com'), await begin('bad.example.com', {
    osParameters: { owner: 'x' },
  })]; // prettier-ignore
  await redis.kill();
  const follow = askSocket(lab.paths.nodedSocket, '/v1/instances/good.example.com/log?follow=1');
  await Promise.all(['good', 'bad'].map((name) => writeFile(gate(`${name}.example.com`), '')));
  await until(async () => (await outcomes()).length >= 2);
  await sleep(6000); // well above the store timeout of a request
  await redis.restart();
  assert.equal((await ended(good)).status, 'success');
  assert.equal((await ended(bad)).error?.code, 'SCRIPT_FAILED');
  assert.equal((await infoOf(lab, 'good.example.com')).installState, 'installed');
  await until(async () => (await infoOf(lab, 'bad.example.com')).installState === 'failed');
  await follow;
  await until(async () => (await outcomes()).length === 0);
});

test('killed before the store is back, the daemon has not lost what ended', async () => {
  const id = await begin('killed.example.com');
  await redis.kill();
  await writeFile(gate('killed.example.com'), '');
  await until(async () => (await outcomes()).some((name) => /^install-.*json$/.test(name)));
  await killNode(lab);
  await redis.restart();
  await lab.startNode();
  assert.equal((await infoOf(lab, 'killed.example.com')).installState, 'installed');
  assert.equal((await ended(id)).error?.code, 'JOB_INTERRUPTED');
  assert.deepEqual(await outcomes(), []);
});

test('what a paused store could not take is refused, never runs, and is explained', async () => {
  const names = Array.from({ length: 12 }, (_, index) => `many${index}.example.com`);
  const submitting = names.map((name) => submit(createOf(name)));
  await sleep(5); // some are in progress, some are accepted
  redis.pause();
  await sleep(11_000); // longer than a command waits for its answer
  redis.resume();
  const answers = await Promise.all(submitting);
  const accepted = names.filter((_, index) => answers[index]?.status === 202);
  await Promise.all(names.map((name) => writeFile(gate(name), '')));
  for (const { id } of answers.filter(({ status }) => status === 202))
    assert.equal((await ended(id)).error, null);
  await until(async () => (await jobsOf(lab)).every(({ endedAtMs }) => endedAtMs !== null));
  const made = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
  assert.deepEqual(made.filter((name) => name.startsWith('many')).sort(), accepted.sort());
  for (const name of names.filter((one) => !accepted.includes(one)))
    assert.equal(await isThere(`${gate(name)}.begun`), false);
});

test('jobs that were accepted wait for the store, whatever they do', async () => {
  const name = 'good.example.com';
  const kinds: readonly object[] = [
    { opcode: 'INSTANCE_SET_PARAMS', name, tags: ['one'] },
    { opcode: 'INSTANCE_RENAME', name, newName: 'better.example.com' },
    { opcode: 'INSTANCE_RENAME', name: 'better.example.com', newName: name },
    createOf('made.example.com', { install: false }),
    { opcode: 'INSTANCE_REMOVE', name: 'made.example.com' },
    { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
  ];
  for (const opcode of kinds) {
    for (const away of ['paused', 'killed'] as const) {
      const submitting = submit(opcode);
      if (away === 'paused') redis.pause();
      else await redis.kill();
      await sleep(1000);
      if (away === 'paused') redis.resume();
      else await redis.restart();
      const { status, id } = await submitting;
      // A refused operation left nothing; an accepted one was done.
      if (status === 202) {
        assert.equal((await ended(id)).error, null, JSON.stringify(opcode));
        break;
      }
      assert.equal(status, 503);
    }
    if (JSON.stringify(opcode).includes('REMOVE'))
      assert.equal((await askSocket(lab.paths.nodedSocket, '/v1/instances/made.example.com')).status, 404); // prettier-ignore
  }
  assert.deepEqual((await infoOf(lab, name)).tags, ['one']);
});

test('a command waits out a failover: a store that is read-only for a moment', async (t) => {
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  await client.call('REPLICAOF', '127.0.0.1', '1');
  const program = join(import.meta.dirname, '../../node_modules/.bin/gnt-instance');
  const modifying = spawn(program, ['modify', '--tags', 'two', 'good.example.com'], {
    env: { ...process.env, GNT_ROOT: lab.paths.root },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(modifying, 'exit');
  let said = '';
  for await (const text of modifying.stderr.setEncoding('utf8') as AsyncIterable<string>) {
    said += text;
    if (/READONLY.*waiting for it/.test(said)) await client.call('REPLICAOF', 'NO', 'ONE');
  }
  assert.deepEqual(await ended, [0, null], said);
  assert.match(said, /READONLY.*waiting for it/);
  assert.deepEqual((await infoOf(lab, 'good.example.com')).tags, ['two']);
});

test("at the end nobody has what is nobody's", async (t) => {
  for (const { name } of await ask(lab, '/v1/instances', instanceInfo.array()))
    assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  for (const job of await jobsOf(lab)) assert.notEqual(job.endedAtMs, null, job.summary);
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  for (const claims of ['claim-name', 'claim-ip', 'claim-mac'])
    assert.equal(await client.hlen(`{gnt}:c:${claims}`), 0, claims);
  assert.deepEqual(await readdir(lab.paths.disksDir), []);
});
