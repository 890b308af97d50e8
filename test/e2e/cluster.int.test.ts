import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { askSocket } from '../../scripts/lab/ask-socket.ts';
import { findSecret } from '../../scripts/lab/find-secret.ts';
import {
  createLab,
  type Lab,
  type ProgramName,
  type ProgramResult,
} from '../../scripts/lab/lab.ts';
import { startRedis, type RedisServer } from '../shared/store/redis-server.ts';

/**
 * Nodes under roots of their own with one real Redis between them, driven by the real commands. Installations run scripts on the
 * host, so that no machine is booted.
 */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'web1.example.com';
let redis: RedisServer;
let one: Lab;
let two: Lab;
let three: Lab;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  [one, two, three] = await Promise.all([
    createLab('gnt-c1'),
    createLab('gnt-c2'),
    createLab('gnt-c3'),
  ]);
});

after(async () => {
  const labs = [one, two, three];
  await Promise.all(labs.map((lab) => lab.stopNode()));
  const leftovers = (await Promise.all(labs.map((lab) => lab.findLeftovers()))).flat();
  await Promise.all(labs.map((lab) => lab.dispose()));
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

const url = (): string => `unix:${redis.socket}`;

async function succeed(lab: Lab, program: ProgramName, ...args: string[]): Promise<string> {
  const result = await lab.run(program, args, { timeoutMs: 60_000 });
  assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

function assertRefused(result: ProgramResult, status: number, code: string, text: RegExp): void {
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
  assert.match(result.stderr, text);
}

async function ask<T>(lab: Lab, path: string, schema: z.ZodType<T>): Promise<T> {
  const { status, body } = await askSocket(lab.paths.nodedSocket, path);
  assert.equal(status, 200, body);
  return schema.parse(JSON.parse(body));
}

const infoOf = (lab: Lab, name = NAME): Promise<InstanceInfo> =>
  ask(lab, `/v1/instances/${name}`, instanceInfo);
const jobsOf = (lab: Lab): Promise<JobRecord[]> => ask(lab, '/v1/jobs', jobRecord.array());
const listed = async (lab: Lab): Promise<unknown> =>
  (await ask(lab, '/v1/nodes', z.array(z.record(z.string(), z.unknown())))).map((node) => [
    node['name'],
    'silent' in node ? 'silent' : 'up',
    node['instances'],
  ]);

/** An OS whose scripts run on the host. */
async function addOs(lab: Lab, name: string, create: readonly string[]): Promise<void> {
  const folder = join(lab.paths.osSearchPath[0] ?? '', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(join(folder, 'parameters.list'), 'owner Who\napi-key A key\n');
  for (const file of ['create', 'import', 'export', 'rename', 'verify']) {
    const lines = file === 'create' ? create : ['exit 0'];
    await writeFile(join(folder, file), ['#!/bin/sh', 'set -eu', ...lines, ''].join('\n'));
    await chmod(join(folder, file), 0o755);
  }
}

const addWords = (os: string, name: string, ...more: string[]): string[] => [
  'add', '-o', os, '-s', '16M', '--enable-safe-install', 'no', '--no-start', ...more, name,
]; // prettier-ignore

test('the first node makes the cluster, others join with its key and with no other', async () => {
  const init = (lab: Lab, ...args: string[]): Promise<ProgramResult> =>
    lab.run('gnt-cluster', ['init', ...args]);
  assertRefused(await init(one, '--store', 'mysql://h/db'), 2, 'USAGE', /'mysql:\/\/h\/db'/);
  assertRefused(await init(one, '--cluster-key', '/k'), 2, 'USAGE', /needs --store/);
  assertRefused(await init(one, '--store', 'unix:/nowhere'), 2, 'HOST_PREREQUISITE', /\/nowhere/);
  const made = await init(one, '--store', url(), 'gnt.example.com');
  assert.equal(made.status, 0, made.stderr);
  const { clusterKeyFile } = one.paths;
  for (const name of ['cluster.key', 'store.json'])
    assert.equal((await stat(join(one.paths.stateDir, name))).mode & 0o777, 0o600);
  assertRefused(await init(two, '--store', url()), 2, 'STORE_KEY', /--cluster-key FILE/);
  const joined = await init(two, '--store', url(), '--cluster-key', clusterKeyFile);
  assert.match(joined.stderr, /^this node is in cluster gnt\.example\.com/);
  assert.equal((await init(two, '--store', url())).status, 0);
  assertRefused(await init(two, '--store', 'redis://h'), 2, 'NOT_SUPPORTED', /redis|unix/);
  await Promise.all([one.startNode('--node', ONE), two.startNode('--node', TWO)]);
  for (const lab of [one, two]) {
    const info = JSON.parse(await succeed(lab, 'gnt-cluster', 'info', '--json')) as object;
    assert.deepEqual({ ...info, nodes: [ONE, TWO], store: url(), name: 'gnt.example.com' }, info);
  }
  const other = await init(one, '--store', 'redis://:hunter22@h');
  assertRefused(other, 2, 'NOT_SUPPORTED', /unix:/);
  assert.ok(!other.stderr.includes('hunter22'));
  assert.deepEqual(await listed(one), await listed(two));
  assert.deepEqual(await listed(two), [
    [ONE, 'up', 0],
    [TWO, 'up', 0],
  ]);
});

test('an installation for another node runs there, and Redis sees neither secrets nor private values', async () => {
  const [secret, privateValue, planted] = [1, 2, 3].map(() => randomBytes(20).toString('hex'));
  assert.ok(secret !== undefined && privateValue !== undefined && planted !== undefined);
  const given = join(one.paths.root, 'given');
  await mkdir(given);
  await writeFile(join(given, 'secret'), secret);
  await writeFile(join(given, 'private'), privateValue);
  await addOs(two, 'teller', [
    'test ${#OSP_OWNER} = 40 && test ${#OSP_API_KEY} = 40',
    'echo "installed for $OSP_OWNER with $OSP_API_KEY"',
  ]);
  await succeed(one, 'gnt-os', 'modify', '--trusted', 'yes', 'teller');
  const heard: string[] = [];
  const client = new Redis({ path: redis.socket });
  const monitor = await client.monitor();
  monitor.on('monitor', (_time: string, words: readonly string[]) => heard.push(words.join(' ')));
  try {
    const added = await one.run('gnt-instance', [
      ...addWords('teller', NAME, '-n', TWO),
      '--os-parameters-private', `owner=@${join(given, 'private')}`,
      '--os-parameters-secret', `api-key=@${join(given, 'secret')}`,
    ]); // prettier-ignore
    assert.equal(added.status, 0, added.stderr);
    assert.equal((await infoOf(one)).primaryNode, TWO);
    assert.deepEqual(await infoOf(one), await infoOf(two));
    await client.publish('any', planted);
    await client.set('planted', planted);
    await client.save();
    while (!heard.some((words) => words.includes(planted))) await sleep(10);
    assert.ok(heard.length > 20);
    const isGiven = (path: string): boolean => path.startsWith(given);
    assert.notDeepEqual(await findSecret(planted, redis.directory, isGiven), []);
    for (const value of [secret, privateValue]) {
      assert.ok(!heard.some((words) => words.includes(value)));
      for (const root of [redis.directory, one.paths.root, two.paths.root])
        assert.deepEqual(await findSecret(value, root, isGiven), []);
    }
  } finally {
    monitor.disconnect();
    client.disconnect();
  }
});

test('an instance is seen and changed from either node, and its jobs are followed', async () => {
  const [job] = (await jobsOf(one)).filter(({ instance }) => instance === NAME);
  assert.equal(job?.node, TWO);
  assert.match(await succeed(one, 'gnt-job', 'watch', String(job.id)), /succeeded/);
  assert.match(await succeed(one, 'gnt-instance', 'log', NAME), /installed for <redacted>/);
  await succeed(one, 'gnt-instance', 'modify', '-O', 'owner=somebody', NAME);
  for (const lab of [one, two]) {
    const listing = await succeed(
      lab,
      'gnt-instance',
      'list',
      '--no-headers',
      '-o',
      'name,pnode,status',
    );
    assert.equal(listing.trim(), `${NAME} ${TWO} ADMIN_down`);
    assert.deepEqual((await infoOf(lab)).osParameters, { owner: 'somebody' });
  }
  const disks = await askSocket(one.paths.nodedSocket, `/v1/instances/${NAME}/disks`);
  assert.ok(disks.body.includes(two.paths.disksDir), disks.body);
  const console_ = await one.run('gnt-instance', ['console', NAME]);
  assertRefused(console_, 2, 'INSTANCE_STATE', /is not running/);
  const nowhere = await one.run(
    'gnt-instance',
    addWords('teller', 'x.example.com', '-n', 'no.example.com'),
  );
  assertRefused(nowhere, 2, 'NODE_NOT_FOUND', /node1\.example\.com.*node2\.example\.com/);
});

test('a job of another node is watched and cancelled; of two who want a name one gets it', async () => {
  await addOs(two, 'slow', ['echo begun', 'exec sleep 600']);
  await succeed(two, 'gnt-os', 'modify', '--trusted', 'yes', 'slow');
  const adding = one.run('gnt-instance', addWords('slow', 'slow.example.com', '-n', TWO));
  const running = async (): Promise<JobRecord | undefined> =>
    (await jobsOf(one)).find(({ status }) => status === 'running');
  while ((await running()) === undefined) await sleep(50);
  const job = await running();
  await succeed(one, 'gnt-job', 'cancel', String(job?.id));
  assertRefused(await adding, 1, 'JOB_CANCELED', /cancelled/);
  await succeed(one, 'gnt-instance', 'remove', '--force', 'slow.example.com');
  const claims = await Promise.all(
    [one, two].map((lab) =>
      lab.run('gnt-instance', [
        'add',
        '-t',
        'diskless',
        '--no-install',
        '-o',
        'slow',
        'claim.example.com',
      ]),
    ),
  );
  assert.deepEqual(
    claims.map(({ status }) => status === 0).sort(),
    [false, true],
    JSON.stringify(claims),
  );
  await succeed(two, 'gnt-instance', 'remove', '--force', 'claim.example.com');
});

test('what one node changes of the cluster, the other one does', async () => {
  await succeed(one, 'gnt-cluster', 'modify', '--expose-service', 'apt=3142:127.0.0.1:3142');
  for (const lab of [one, two]) {
    const isOpen = async (): Promise<boolean> => {
      const { stdout } = await run('ip', [
        'netns',
        'exec',
        lab.paths.networkNamespace,
        'nft',
        'list',
        'ruleset',
      ]);
      return stdout.includes('3142');
    };
    while (!(await isOpen())) await sleep(50);
  }
});

test('a name is one node, and a node is one name; one that is gone is removed', async () => {
  const words = ['init', '--store', url(), '--cluster-key', one.paths.clusterKeyFile];
  await succeed(three, 'gnt-cluster', ...words);
  assertRefused(
    await three.run('gnt-noded', ['--node', TWO]),
    2,
    'CONFLICT',
    /another node 'node2/,
  );
  await three.startNode('--node', 'node3.example.com');
  const remove = (): Promise<ProgramResult> => one.run('gnt-node', ['remove', 'node3.example.com']);
  assertRefused(await remove(), 2, 'CONFLICT', /answers/);
  await three.stopNode();
  assertRefused(
    await three.run('gnt-noded', ['--node', 'n4.example.com']),
    2,
    'CONFLICT',
    /--node node3/,
  );
  assert.equal((await remove()).status, 0);
  assertRefused(await one.run('gnt-node', ['remove', TWO]), 2, 'CONFLICT', /has instances, web1/);
  assertRefused(
    await one.run('gnt-node', ['remove', 'x.example.com']),
    2,
    'NODE_NOT_FOUND',
    /x\.example/,
  );
});

test('a node that was killed is shown as silent, and comes back', async () => {
  const ended = once(two.node(), 'exit');
  two.node().kill('SIGKILL');
  await ended;
  assert.deepEqual(await listed(one), [
    [ONE, 'up', 0],
    [TWO, 'silent', 1],
  ]);
  assert.match(await succeed(one, 'gnt-node', 'list'), /node2\.example\.com .* silent$/m);
  assert.equal((await infoOf(one)).status, 'ERROR_nodedown');
  const all = await ask(one, '/v1/instances', instanceInfo.array());
  assert.deepEqual(
    all.map(({ name, status }) => [name, status]),
    [[NAME, 'ERROR_nodedown']],
  );
  const modify = await one.run('gnt-instance', ['modify', '-O', 'owner=x', NAME]);
  assertRefused(
    modify,
    1,
    'NODE_UNREACHABLE',
    /node2\.example\.com.*\n.*is gnt-noded running there/,
  );
  assert.equal((await one.run('gnt-cluster', ['verify'])).status, 1);
  await two.startNode('--node', TWO);
  assert.equal((await infoOf(one)).status, 'ADMIN_down');
});

test('without Redis commands fail by name, and work again when it is back', async () => {
  await redis.kill();
  for (const lab of [one, two]) {
    const listing = await lab.run('gnt-instance', ['list']);
    assertRefused(listing, 1, 'STORE_UNAVAILABLE', /unix:.*\nhint: /);
  }
  assertRefused(
    await three.run('gnt-noded', ['--node', 'node3.example.com']),
    2,
    'HOST_PREREQUISITE',
    /unix:/,
  );
  await redis.restart();
  for (;;) {
    const { status } = await askSocket(one.paths.nodedSocket, '/v1/instances');
    if (status === 200 && (await infoOf(one)).status === 'ADMIN_down') break;
    await sleep(100);
  }
  await succeed(one, 'gnt-instance', 'remove', '--force', NAME);
  assert.deepEqual(await ask(two, '/v1/instances', instanceInfo.array()), []);
});
