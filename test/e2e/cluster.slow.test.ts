import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { doctorReport, nodeInfo } from '#shared/contract/api.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { startImageServer } from '../noded/content/images/image-server.ts';
import { askRapi } from '../noded/api/rapi/ask-rapi.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import {
  addOs,
  addWords,
  ask,
  assertRefused,
  infoOf,
  jobsOf,
  leaveBehind,
  listed,
  statusOf,
  submit,
  succeed,
  untilRunning,
} from './support/ask-nodes.ts';

// One story, because nodes and Redis take half a minute to start. Each test continues from the
// state of the previous one.

/**
 * Nodes in separate roots with one real Redis, driven by the real commands. Installations run
 * scripts on the host, so that no QEMU process starts.
 */
const ONE = 'node1.example.com';
/** The third node has none, like a node of an earlier release. */
const DATA_ADDRESS = ['--data-address', '127.0.0.1:0'];
const TWO = 'node2.example.com';
const THREE = 'node3.example.com';
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

test('the first node makes the cluster, others join with its key and with no other', async () => {
  const init = (lab: Lab, ...args: string[]): Promise<ProgramResult> =>
    lab.run('gnt-cluster', ['init', ...args]);
  assertRefused(await init(one, '--store', 'mysql://h/db'), 2, 'USAGE', /'mysql:\/\/h\/db'/);
  assertRefused(await init(one, '--cluster-key', '/k'), 2, 'USAGE', /requires --store/);
  assertRefused(await init(one, '--store', 'unix:/nowhere'), 2, 'HOST_PREREQUISITE', /\/nowhere/);
  const made = await init(one, '--store', url(), 'gnt.example.com');
  assert.equal(made.status, 0, made.stderr);
  // The outcome of an interrupted init is unknown, so the same command is repeated.
  const repeated = await init(one, '--store', url(), 'gnt.example.com');
  assert.match(repeated.stderr, /^this node joined cluster gnt\.example\.com/);
  const otherName = await init(one, '--store', url(), 'other.example.com');
  assertRefused(otherName, 2, 'CONFLICT', /not other\.example\.com/);
  const { clusterKeyFile } = one.paths;
  await writeFile(`${clusterKeyFile}.half-1`, await readFile(clusterKeyFile));
  for (const name of ['cluster.key', 'store.json'])
    assert.equal((await stat(join(one.paths.stateDir, name))).mode & 0o777, 0o600);
  assertRefused(await init(two, '--store', url()), 2, 'STORE_KEY', /--cluster-key FILE/);
  const joined = await init(two, '--store', url(), '--cluster-key', clusterKeyFile);
  assert.match(joined.stderr, /^this node joined cluster gnt\.example\.com/);
  assert.equal((await init(two, '--store', url())).status, 0);
  assertRefused(await init(two, '--store', 'redis://h'), 2, 'NOT_SUPPORTED', /redis|unix/);
  await mkdir(join(one.paths.root, 'etc/gnt'), { recursive: true });
  const digest = createHash('md5').update('writer:Ganeti Remote API:password').digest('hex');
  await writeFile(join(one.paths.root, 'etc/gnt/rapi-users'), `writer {HA1}${digest} write\n`, {
    mode: 0o600,
  });
  await Promise.all([
    one.startNode('--node', ONE, ...DATA_ADDRESS, '--rapi', '127.0.0.1:0'),
    two.startNode('--node', TWO, ...DATA_ADDRESS),
  ]);
  assert.ok(!existsSync(`${clusterKeyFile}.half-1`), "a killed program's copy of the key");
  const shown = await succeed(one, 'gnt-cluster', 'info');
  assert.ok(shown.includes(`Store: ${url()}`) && shown.includes('gnt.example.com'), shown);
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
  assert.equal(
    await statusOf(one, { opcode: 'OS_SET_PARAMS', name: 'teller', trusted: true }),
    'success',
  );
  const { status, stdout } = await one.run('gnt-os', ['diagnose']);
  assert.equal(status, 1);
  assert.match(stdout, /^OS: teller \[global status: partial\] \[trusted\]$/m);
  assert.match(stdout, new RegExp(`Node ${TWO}: VALID[^]*Node ${ONE}: MISSING`));
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
    assert.equal((await infoOf(one, NAME)).primaryNode, TWO);
    assert.deepEqual(await infoOf(one, NAME), await infoOf(two, NAME));
    await client.publish('any', planted);
    await client.set('planted', planted);
    await client.save();
    while (!heard.some((words) => words.includes(planted))) await sleep(10);
    assert.ok(heard.length > 20);
    const isGiven = (path: string): boolean => path.startsWith(given);
    assert.notDeepEqual(await findSecret(planted, redis.directory, isGiven), []);
    const values = [secret, privateValue];
    for (const value of values) assert.ok(!heard.some((words) => words.includes(value)));
    for (const root of [redis.directory, one.paths.root, two.paths.root])
      assert.deepEqual(await findSecret(values, root, isGiven), []);
  } finally {
    monitor.disconnect();
    client.disconnect();
  }
});

test('an image with a checksum comes from the other node, also when its server is gone', async () => {
  const content = randomBytes(3_000_000);
  await using server = await startImageServer({ content });
  const checksum = `sha256:${createHash('sha256').update(content).digest('hex')}`;
  const install = (node: string, name: string): string[] => [
    ...['add', '-s', '16M', '--enable-safe-install', 'no', '--no-start', '-n', node, name],
    ...['--os-image', server.url, '--os-image-checksum', checksum, '--image-format', 'raw'],
  ];
  await succeed(one, 'gnt-instance', ...install(TWO, 'image1.example.com'));
  assert.equal(server.requests.length, 1);
  server.options.intercept = (request) => {
    request.destroy();
    return true;
  };
  const added = await one.run('gnt-instance', install(ONE, 'image2.example.com'));
  assert.equal(added.status, 0, added.stderr);
  assert.equal(server.requests.length, 1);
  assert.ok(added.stderr.includes(`node '${TWO}' has the image and sends it`), added.stderr);
  const { uuid } = await infoOf(one, 'image2.example.com');
  const disk = await readFile(join(one.paths.disksDir, uuid, 'disk0.raw'));
  assert.ok(disk.subarray(0, content.length).equals(content));
  for (const name of ['image1', 'image2'])
    await succeed(one, 'gnt-instance', 'remove', '-f', `${name}.example.com`);
});

test('an instance is seen and changed from either node, and its jobs are followed', async () => {
  const [job] = (await jobsOf(one)).filter(({ instance }) => instance === NAME);
  assert.equal(job?.node, TWO);
  assert.match(await succeed(one, 'gnt-job', 'watch', String(job.id)), /succeeded/);
  assert.match(await succeed(one, 'gnt-instance', 'log', NAME), /installed for <redacted>/);
  await succeed(one, 'gnt-instance', 'modify', '-O', 'owner=somebody', NAME);
  assert.deepEqual((await infoOf(two, NAME)).osParameters, { owner: 'somebody' });
  const fields = ['--no-headers', '-o', 'name,pnode,status'];
  const listing = await succeed(one, 'gnt-instance', 'list', ...fields);
  assert.equal(listing.trim(), `${NAME} ${TWO} ADMIN_down`);
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

test('the remote API of one node tells of both, and changes what is on the other', async () => {
  const log = await readFile(join(one.paths.root, 'noded.log'), 'utf8');
  const rapi = {
    port: Number(/"port":(\d+),"event":"rapi\.ready"/.exec(log)?.[1]),
    certificateFile: join(one.paths.root, 'etc/gnt/rapi.pem'),
  };
  const asked = async (path: string, method = 'GET', body?: string): Promise<unknown> => {
    const login = { user: 'writer', password: 'password' };
    const answer = await askRapi(rapi, path, {
      ...login,
      method,
      body,
    });
    assert.equal(answer.status, 200, JSON.stringify(answer));
    return answer.body;
  };
  const nodes = z.array(z.looseObject({ name: z.string(), pinst_list: z.array(z.string()) }));
  assert.deepEqual(
    nodes.parse(await asked('/2/nodes?bulk=1')).map((node) => [node.name, node.pinst_list]),
    [
      [ONE, []],
      [TWO, [NAME]],
    ],
  );
  const job = z.number().parse(await asked(`/2/instances/${NAME}/tags?tag=blue`, 'PUT'));
  const fields = JSON.stringify({ fields: ['status'] });
  for (;;) {
    const change = await asked(`/2/jobs/${job}/wait`, 'GET', fields);
    if (JSON.stringify(change).includes('success')) break;
  }
  assert.deepEqual(await asked(`/2/instances/${NAME}/tags`), ['blue']);
});

const diskless = {
  opcode: 'INSTANCE_CREATE',
  diskTemplate: 'diskless',
  install: false,
  osType: 'slow',
};

test('a job of another node is watched and cancelled; of two who want a name one gets it', async () => {
  // Trust depends on the content, which has to be equal on both nodes.
  for (const lab of [one, two]) await addOs(lab, 'slow', ['echo begun', 'exec sleep 600']);
  assert.equal(
    await statusOf(two, { opcode: 'OS_SET_PARAMS', name: 'slow', trusted: true }),
    'success',
  );
  const adding = one.run('gnt-instance', addWords('slow', 'slow.example.com', '-n', TWO));
  const { id } = await untilRunning(one);
  // A job that is cancelled before it creates the record leaves no instance.
  while ((await one.run('gnt-instance', ['info', 'slow.example.com'])).status !== 0)
    await sleep(20);
  await succeed(one, 'gnt-job', 'cancel', String(id));
  assertRefused(await adding, 1, 'JOB_CANCELED', /cancelled/);
  assert.equal(
    await statusOf(one, { opcode: 'INSTANCE_REMOVE', name: 'slow.example.com' }),
    'success',
  );
  const claim = { ...diskless, name: 'claim.example.com' };
  const claims = await Promise.all([one, two].map((lab) => statusOf(lab, claim)));
  assert.deepEqual(claims.sort(), ['INSTANCE_EXISTS', 'success']);
  assert.equal(
    await statusOf(two, { opcode: 'INSTANCE_REMOVE', name: 'claim.example.com' }),
    'success',
  );
});

test('without -n a choice says why, passes over who is drained, and gives the last room once', async () => {
  await succeed(one, 'gnt-node', 'modify', '--drained', 'yes', TWO);
  const fields = ['--no-headers', '-o', 'name,role,state'];
  assert.match(await succeed(two, 'gnt-node', 'list', ...fields), new RegExp(`${TWO} +D +drained`));
  const remove = async (name: string): Promise<void> =>
    assert.equal(await statusOf(one, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  const placed = await submit(two, { ...diskless, name: 'placed.example.com' });
  assert.equal(placed.error, null);
  assert.equal(placed.node, ONE);
  const [why, ...passedOver] = placed.log.map(({ message }) => message);
  assert.match(why ?? '', /^placed on node1\.example\.com, .* of memory.*vcpus would remain/);
  assert.equal(passedOver[0], `not on ${TWO}: drained`);
  await remove('placed.example.com');
  const told = await statusOf(one, { ...diskless, name: 'told.example.com', node: TWO });
  assert.equal(told, 'NODE_DRAINED');
  // More than half of the free memory, twice.
  const { memoryFreeMiB } = await ask(one, '/v1/node', nodeInfo);
  const beparams = { memoryMiB: Math.floor(0.6 * memoryFreeMiB) };
  const names = ['big1.example.com', 'big2.example.com'];
  const big = names.map((name, at) =>
    statusOf(at === 0 ? one : two, { ...diskless, name, beparams }),
  );
  const ends = await Promise.all(big);
  assert.deepEqual(ends.toSorted(), ['NO_ROOM', 'success']);
  const words = ['add', '-t', 'diskless', '--no-install', '-B', `memory=${beparams.memoryMiB}`];
  const none = await two.run('gnt-instance', [...words, '-o', 'slow', 'big3.example.com']);
  assertRefused(none, 2, 'NO_ROOM', /node1\.example\.com: .* of memory, .*node2.*drained/);
  await remove(names[ends.indexOf('success')] ?? '');
  await succeed(one, 'gnt-node', 'modify', '--drained', 'no', TWO);
});

test('a node that is marked offline is asked for nothing, and does nothing', async () => {
  const modify = (lab: Lab, ...words: string[]): Promise<ProgramResult> =>
    lab.run('gnt-node', ['modify', ...words]);
  assertRefused(
    await modify(two, '-O', 'yes', TWO),
    2,
    'CONFLICT',
    /answers this command and is therefore not offline/,
  );
  assertRefused(await modify(two, '-O', 'yes', 'no.example.com'), 2, 'NODE_NOT_FOUND', /'no\./);
  assertRefused(await modify(two, TWO), 2, 'USAGE', /--drained/);
  const marked = await modify(one, '--offline', 'yes', TWO);
  assert.equal(marked.status, 0);
  assert.match(marked.stderr + marked.stdout, /gnt-noded still runs on node node2\.example\.com/);
  const offline = async (lab: Lab): Promise<string | undefined> =>
    (await ask(lab, '/v1/doctor', doctorReport)).findings.find(
      ({ check }) => check === 'membership',
    )?.level;
  assert.deepEqual([await offline(one), await offline(two)], ['ok', 'warning']);
  assert.deepEqual(await listed(one), [
    [ONE, 'up', 0],
    [TWO, 'silent', 1],
  ]);
  assert.equal((await infoOf(one, NAME)).status, 'ERROR_nodeoffline');
  const shown = await succeed(one, 'gnt-instance', 'list', '--no-headers', '-o', 'name,status');
  assert.match(shown, new RegExp(`^${NAME} +ERROR_nodeoffline$`, 'm'));
  const start = { opcode: 'INSTANCE_STARTUP', name: NAME };
  for (const lab of [one, two]) assert.equal(await statusOf(lab, start), 'NODE_OFFLINE');
  const placed = await submit(two, { ...diskless, name: 'placed.example.com' });
  assert.equal(placed.node, ONE);
  const removal = { opcode: 'INSTANCE_REMOVE', name: 'placed.example.com' };
  assert.equal(await statusOf(one, removal), 'success');
  assertRefused(await one.run('gnt-node', ['remove', TWO]), 2, 'CONFLICT', /answers/);
  assert.equal((await modify(two, '--offline', 'no', TWO)).status, 0);
  assert.equal((await infoOf(one, NAME)).status, 'ADMIN_down');
});

test('what one node changes of the cluster, the other one does', async () => {
  const exposeServices = { apt: { port: 3142, host: '127.0.0.1', hostPort: 3142 } };
  assert.equal(await statusOf(one, { opcode: 'CLUSTER_SET_PARAMS', exposeServices }), 'success');
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

test('a name is one node; one that is gone is removed with what it had', async () => {
  const token = (await succeed(one, 'gnt-cluster', 'join-token')).trim();
  await succeed(three, 'gnt-node', 'add', token);
  assertRefused(await three.run('gnt-cluster', ['join', token]), 2, 'CONFLICT', /already/);
  const twin = await three.run('gnt-noded', ['--node', TWO]);
  assertRefused(twin, 2, 'CONFLICT', /already has a node 'node2/);
  await leaveBehind(url(), one.paths.clusterKeyFile, THREE, 'lost.example.com');
  const remove = (...words: string[]): Promise<ProgramResult> =>
    one.run('gnt-node', ['remove', ...words]);
  assertRefused(await remove(TWO), 2, 'CONFLICT', /'node2\.example\.com' answers/);
  assertRefused(await remove(THREE), 2, 'CONFLICT', /has instances, lost\.example\.com/);
  assert.equal((await remove('--forget-instances', THREE)).status, 0);
  const names = (await ask(two, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
  assert.deepEqual(names, [NAME]);
  assertRefused(await remove(THREE), 2, 'NODE_NOT_FOUND', /node3/);
});

test('a node that was removed while it was cut off says so, and is no node of the cluster again', async (t) => {
  await three.startNode('--node', THREE);
  assert.match(await succeed(one, 'gnt-node', 'list'), /node3\.example\.com/);
  three.node().kill('SIGSTOP');
  const remove = ['remove', '--forget-instances', THREE];
  assertRefused(await one.run('gnt-node', remove), 2, 'CONFLICT', /store, but does not answer/);
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await succeed(one, 'gnt-node', ...remove);
  three.node().kill('SIGCONT');
  const removedAtMs = async (): Promise<number | null> =>
    (await ask(three, '/v1/node', nodeInfo)).removedAtMs;
  while ((await removedAtMs()) === null) await sleep(100);
  const assertRemoved = async (): Promise<void> => {
    const add = await three.run('gnt-instance', addWords('words', 'new.example.com'));
    assertRefused(add, 2, 'NODE_REMOVED', /removed from its cluster.*\n.*node\.key/);
    const other = await three.run('gnt-node', ['remove', '--forget-instances', TWO]);
    assertRefused(other, 2, 'NODE_REMOVED', /removed from its cluster/);
    const drain = { opcode: 'NODE_SET_PARAMS', name: TWO, drained: true };
    assert.equal(await statusOf(three, drain), 'NODE_REMOVED');
    assert.doesNotMatch(await succeed(one, 'gnt-node', 'list'), /node3/);
  };
  await assertRemoved();
  await three.stopNode();
  await three.startNode('--node', THREE);
  assert.notEqual(await removedAtMs(), null);
  await assertRemoved();
  const doctor = await three.run('gnt-node', ['doctor']);
  assert.equal(doctor.status, 1);
  assert.match(doctor.stdout, /^error\s+membership: this node was removed/m);
  await three.stopNode();
  // With a new key of its own it is another node, which may have the name.
  await rm(three.paths.nodeKeyFile);
  await three.startNode('--node', THREE);
  assert.equal(await removedAtMs(), null);
  await three.stopNode();
  await succeed(one, 'gnt-node', 'remove', THREE);
  await rm(three.paths.nodeKeyFile);
});

test('a node that was killed is shown as silent, and comes back', async () => {
  await killNode(two);
  assert.deepEqual(await listed(one), [
    [ONE, 'up', 0],
    [TWO, 'silent', 1],
  ]);
  assert.match(await succeed(one, 'gnt-node', 'list'), /node2\.example\.com .* silent$/m);
  assert.equal((await infoOf(one, NAME)).status, 'ERROR_nodedown');
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
    /node2\.example\.com.*\n.*Check that gnt-noded runs there/,
  );
  const verified = await one.run('gnt-cluster', ['verify', '--error-codes']);
  assert.equal(verified.status, 1);
  assert.match(verified.stdout, /^ERROR:reachable:node:node2\.example\.com:/m);
  await two.startNode('--node', TWO, ...DATA_ADDRESS);
  const again = await one.run('gnt-cluster', ['verify', '--json']);
  assert.match(again.stdout, /"name": "node2\.example\.com",\s+"check": "tun"/);
  assert.equal((await infoOf(one, NAME)).status, 'ADMIN_down');
});

test('what somebody puts back into Redis is refused, named, and taken when the operator says so', async (t) => {
  const setTrusted = (trusted: boolean): Promise<string> =>
    statusOf(one, { opcode: 'OS_SET_PARAMS', name: 'teller', trusted });
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  const uuid = (await infoOf(one, NAME)).uuid;
  const places = [
    ['{gnt}:c:os', 'teller'],
    ['{gnt}:c:instances', uuid],
  ] as const;
  const isTrusted = async (): Promise<unknown> =>
    JSON.parse((await askSocket(two.paths.nodedSocket, '/v1/os/teller')).body) as unknown;
  assert.match(JSON.stringify(await isTrusted()), /"trusted":true/);
  const old = await Promise.all(places.map(([key, id]) => client.hget(key, id)));
  assert.equal(await setTrusted(false), 'success');
  const modify = { opcode: 'INSTANCE_SET_PARAMS', name: NAME, metadata: { note: 'new' } };
  assert.equal(await statusOf(one, modify), 'success');
  assert.match(JSON.stringify(await isTrusted()), /"trusted":false/);
  for (const [index, [key, id]] of places.entries()) await client.hset(key, id, old[index] ?? '');
  assert.match(JSON.stringify(await isTrusted()), /RECORD_REPLAYED/);
  assert.equal(await setTrusted(true), 'RECORD_REPLAYED');
  assert.deepEqual(await ask(two, '/v1/instances', instanceInfo.array()), []);
  assertRefused(
    await two.run('gnt-instance', ['info', NAME]),
    2,
    'RECORD_REPLAYED',
    /accept-records/,
  );
  const doctor = await two.run('gnt-node', ['doctor']);
  assert.match(
    doctor.stdout,
    new RegExp(`records: 1 record\\(s\\) set aside: instances/${uuid} .*older than`),
  );
  const accept = ['accept-records', '--force'];
  assertRefused(await two.run('gnt-cluster', accept), 2, 'CONFLICT', /gnt-noded is running/);
  for (const [lab, words] of [
    [two, ['--node', TWO]],
    [one, ['--node', ONE, '--rapi', '127.0.0.1:0']],
  ] as const) {
    await lab.stopNode();
    await succeed(lab, 'gnt-cluster', ...accept);
    await lab.startNode(...words);
  }
  assert.match(JSON.stringify(await isTrusted()), /"trusted":true/);
  assert.equal((await infoOf(one, NAME)).metadata['note'], undefined);
});

test('the key of the cluster is renewed while nodes run, and over the death of the one that renews it', async () => {
  const keyOf = (lab: Lab): Promise<string> => readFile(lab.paths.clusterKeyFile, 'utf8');
  await three.startNode('--node', THREE);
  const former = join(one.paths.root, 'former.key');
  await writeFile(former, await keyOf(one), { mode: 0o600 });
  let isRenewing = true;
  const changing = (async () => {
    for (let round = 0; isRenewing || round === 0; round += 1) {
      const metadata = { round: String(round) };
      const modify = { opcode: 'INSTANCE_SET_PARAMS', name: NAME, metadata };
      assert.equal(await statusOf(two, modify), 'success');
      for (const lab of [one, two, three]) await infoOf(lab, NAME);
    }
  })();
  const told = await one.run('gnt-cluster', ['renew-crypto']);
  assert.match(told.stderr, /on node1\.example\.com, node2\.example\.com, node3\.example\.com/);
  // The output has each node's steps, the last one before the result.
  for (const step of ['new key received:', 'new key in use:', 'old key removed from:'])
    for (const node of [ONE, TWO, THREE])
      assert.match(told.stderr, new RegExp(`^${step} .*${RegExp.escape(node)}`, 'm'));
  assert.match(told.stderr, /^records encrypted again by: node1\.example\.com$/m);
  isRenewing = false;
  await changing;
  const renewed = await keyOf(one);
  assert.notEqual(renewed, await readFile(former, 'utf8'));
  for (const lab of [two, three]) assert.equal(await keyOf(lab), renewed);
  const joining = await createLab('gnt-c4');
  const words = ['init', '--store', url(), '--cluster-key'];
  assertRefused(
    await joining.run('gnt-cluster', [...words, former]),
    2,
    'STORE_KEY',
    /has a different key/,
  );
  await joining.dispose();

  const renewing = one.run('gnt-cluster', ['renew-crypto']);
  while ((await keyOf(two)) === renewed && !existsSync(two.paths.nextClusterKeyFile))
    await sleep(1);
  const ended = once(one.node(), 'exit');
  one.node().kill('SIGKILL');
  await Promise.all([ended, renewing]);
  await one.startNode('--node', ONE, ...DATA_ADDRESS, '--rapi', '127.0.0.1:0');
  const isOver = async (lab: Lab): Promise<boolean> => {
    const { body } = await askSocket(lab.paths.nodedSocket, '/v1/doctor');
    return body.includes('no renewal of the cluster key is pending');
  };
  while (!(await isOver(one))) await sleep(100);
  const again = await keyOf(one);
  for (const lab of [two, three]) assert.equal(await keyOf(lab), again);
  assert.notEqual(again, renewed);
  for (const lab of [one, two, three]) assert.equal((await infoOf(lab, NAME)).name, NAME);
});

test('a node that does not answer is left behind only when the operator says so, and joins anew', async () => {
  await three.stopNode();
  const renew = (...words: string[]): Promise<ProgramResult> =>
    two.run('gnt-cluster', ['renew-crypto', ...words]);
  assertRefused(await renew(), 1, 'NODE_UNREACHABLE', /do not answer: node3\.example\.com/);
  const told = await renew('--skip', THREE);
  assert.match(told.stderr, /node3\.example\.com was left out/);
  const start = await three.run('gnt-noded', ['--node', THREE]);
  assertRefused(start, 2, 'STORE_KEY', /has a different key/);
  const words = ['init', '--store', url(), '--cluster-key', one.paths.clusterKeyFile];
  await succeed(three, 'gnt-cluster', ...words);
  await three.startNode('--node', THREE);
  assert.equal((await infoOf(three, NAME)).name, NAME);
  await three.stopNode();
  assert.equal((await one.run('gnt-node', ['remove', THREE])).status, 0);
});

test('without Redis commands fail by name, and all goes on when it is back', async () => {
  const adding = two.run('gnt-instance', addWords('slow', 'slow.example.com', '-n', TWO));
  const { id } = await untilRunning(two);
  // In the script: nothing is written to the store meanwhile.
  const log = '/v1/instances/slow.example.com/log';
  while (!(await askSocket(two.paths.nodedSocket, log)).body.includes('begun')) await sleep(50);
  await redis.kill();
  const refused = await askSocket(one.paths.nodedSocket, '/v1/instances');
  assert.equal(refused.status, 503);
  assert.match(refused.body, /STORE_UNAVAILABLE.*unix:.*hint/);
  const doctor = await one.run('gnt-node', ['doctor']);
  assert.match(doctor.stdout, /^error\s+store: .*does not answer/m);
  const canceled = await askSocket(two.paths.nodedSocket, `/v1/jobs/${id}`, { method: 'DELETE' });
  assert.equal(canceled.status, 202);
  assert.equal((await adding).status, 1);
  await redis.restart();
  for (;;) {
    const { status, body } = await askSocket(one.paths.nodedSocket, '/v1/jobs');
    const jobs = status === 200 ? jobRecord.array().parse(JSON.parse(body)) : [];
    if (jobs.some((job) => job.id === id && job.endedAtMs !== null)) break;
    await sleep(100);
  }
  while ((await infoOf(one, NAME)).status !== 'ADMIN_down') await sleep(100);
  for (const name of ['slow.example.com', NAME])
    assert.equal(await statusOf(one, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  assert.deepEqual(await ask(two, '/v1/instances', instanceInfo.array()), []);
});
