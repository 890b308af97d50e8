import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import {
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { doctorReport } from '#shared/contract/api.ts';
import { jobEvent, jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import {
  addOs,
  assertRefused,
  ask,
  infoOf,
  statusOf,
  submit,
  succeed,
} from './support/ask-nodes.ts';

/**
 * Three nodes with one real, sealed Redis, and instances that move. The third node has a small file
 * system for disks. No QEMU process runs.
 */
const NAMES = ['node1.example.com', 'node2.example.com', 'node3.example.com'] as const;
const [ONE, TWO, THREE] = NAMES;
const DATA_ADDRESS = ['--data-address', '127.0.0.1:0'];
const MIB = 1024 * 1024;
/** Slow enough for an interruption or a command during the copy. */
const DATA_RATE = 8 * MIB;
const DATA_BYTES = 12 * MIB;
const LONG_BYTES = 60 * MIB;
const DISK_BYTES = 128 * MIB;
const SMALL = '40m';
let redis: RedisServer;
let one: Lab;
let two: Lab;
let three: Lab;

const labs = (): readonly (readonly [Lab, string])[] => [
  [one, ONE],
  [two, TWO],
  [three, THREE],
];

before(async () => {
  redis = await startRedis({ appendOnly: true });
  [one, two, three] = await Promise.all([
    createLab('gnt-mv1'),
    createLab('gnt-mv2'),
    createLab('gnt-mv3'),
  ]);
  const url = `unix:${redis.socket}`;
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  const key = one.paths.clusterKeyFile;
  for (const lab of [two, three])
    await succeed(lab, 'gnt-cluster', 'init', '--store', url, '--cluster-key', key);
  // The third node's disks are on a small file system.
  await mkdir(small());
  await mkdir(dirname(three.paths.disksDir), { recursive: true });
  await symlink(small(), three.paths.disksDir);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${SMALL},mode=700`, 'gnt-test-mv', small()]);
  await Promise.all(labs().map(([lab, name]) => lab.startNode('--node', name, ...DATA_ADDRESS)));
  for (const lab of [one, two, three]) await addOs(lab, 'both', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'both');
});

after(async () => {
  await Promise.all(labs().map(([lab]) => lab.stopNode()));
  await run('umount', ['-l', small()]);
  await rmdir(small());
  const leftovers = (await Promise.all(labs().map(([lab]) => lab.findLeftovers()))).flat();
  await Promise.all(labs().map(([lab]) => lab.dispose()));
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

/** Outside the root: a mount namespace that is made meanwhile has its own copy of this mount. */
const small = (): string => `${three.paths.root}.disks`;

/** Adds a stopped instance with data on its disk, on the first node. */
async function place(
  t: TestContext,
  name: string,
  more: object = {},
  dataBytes = DATA_BYTES,
): Promise<Placed> {
  const made = await submit(one, {
    ...{
      opcode: 'INSTANCE_CREATE',
      name,
      node: ONE,
      install: false,
      start: false,
      nics: [{ mode: 'user' }],
    },
    ...{ disks: [{ sizeBytes: DISK_BYTES }], beparams: { memoryMiB: 64 }, osType: 'both', ...more },
  });
  assert.equal(made.error, null);
  t.after(() => submit(one, { opcode: 'INSTANCE_REMOVE', name }));
  const { uuid } = await infoOf(one, name);
  const path = join(one.paths.disksDir, uuid, 'disk0.raw');
  await using file = await open(path, 'r+');
  for (let at = 0; at < dataBytes; at += MIB) await file.write(randomBytes(MIB), 0, MIB, 2 * at);
  return { name, uuid, digest: await digestOf(path) };
}

interface Placed {
  readonly name: string;
  readonly uuid: string;
  readonly digest: string;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Checks that it is complete on the node of its record, and absent elsewhere. */
async function assertOn({ name, uuid, digest }: Placed, node: string): Promise<void> {
  assert.equal((await infoOf(one, name)).primaryNode, node);
  for (const [lab, each] of labs()) {
    const found = (await readdir(lab.paths.disksDir)).filter((entry) => entry.includes(uuid));
    assert.deepEqual(found, each === node ? [uuid] : [], `${each} while it is on ${node}`);
    if (each === node)
      assert.equal(await digestOf(join(lab.paths.disksDir, uuid, 'disk0.raw')), digest);
  }
}

async function begin(name: string, node: string): Promise<number> {
  const body = { opcode: 'INSTANCE_MOVE', name, node, dataRate: DATA_RATE };
  const answer = await askSocket(one.paths.nodedSocket, '/v1/jobs', { method: 'POST', body });
  assert.equal(answer.status, 202, answer.body);
  return (JSON.parse(answer.body) as { id: number }).id;
}

/** Waits until part of the data has arrived. */
async function untilArriving(lab: Lab, uuid: string, id: number): Promise<void> {
  const path = join(lab.paths.disksDir, `copying-${uuid}`, 'disk0.raw');
  for (;;) {
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && found.blocks * 512 > 2 * MIB) return;
    const { endedAtMs, error } = await jobOf(one, id);
    assert.equal(endedAtMs, null, `it ended before: ${error?.message}`);
    await sleep(5);
  }
}

const jobOf = (lab: Lab, id: number): Promise<JobRecord> => ask(lab, `/v1/jobs/${id}`, jobRecord);

async function endOf(lab: Lab, id: number): Promise<JobRecord> {
  const { body } = await askSocket(lab.paths.nodedSocket, `/v1/jobs/${id}/events`);
  const end = jobEvent.parse(JSON.parse(body.trim().split('\n').at(-1) ?? ''));
  assert.ok(end.type === 'end', body);
  return end.job;
}

const nothingOf = async (lab: Lab, uuid: string): Promise<boolean> =>
  !(await readdir(lab.paths.disksDir)).some((entry) => entry.includes(uuid));

test('an instance moves where there is room or where it is told, and stays what it was', async (t) => {
  const web = await place(t, 'web.example.com');
  const before = await infoOf(one, web.name);
  // The third node has too little room.
  await succeed(two, 'gnt-instance', 'move', 'web');
  await assertOn(web, TWO);
  const moved = await infoOf(two, web.name);
  const { primaryNode, serialNo, modifiedAtMs } = before;
  assert.deepEqual({ ...moved, primaryNode, serialNo, modifiedAtMs }, before);
  const path = join(two.paths.disksDir, web.uuid, 'disk0.raw');
  assert.ok((await stat(path)).blocks * 512 < DATA_BYTES + 8 * MIB, 'holes stay holes');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  // The other node runs its jobs now, for requests from any node.
  await succeed(one, 'gnt-instance', 'modify', '--tags', 'moved', 'web');
  await succeed(one, 'gnt-instance', 'move', '-n', ONE, 'web');
  await assertOn(web, ONE);
});

/** Runs a move that is refused. */
const refusedMove = async (...words: string[]) => one.run('gnt-instance', ['move', ...words]);

test('what cannot move is refused by name, and nothing is anywhere else', async (t) => {
  const web = await place(t, 'refused.example.com', {}, MIB);
  assertRefused(await refusedMove('-n', ONE, 'refused'), 2, 'INSTANCE_STATE', /already on node/);
  const unknown = await refusedMove('-n', 'no.example.com', 'refused');
  assertRefused(unknown, 2, 'NODE_NOT_FOUND', /node1\.example\.com/);
  await succeed(one, 'gnt-node', 'modify', '--drained', 'yes', TWO);
  assertRefused(await refusedMove('-n', TWO, 'refused'), 2, 'NODE_DRAINED', /node2/);
  // The third node's file system is smaller than the disk.
  assertRefused(await refusedMove('-n', THREE, 'refused'), 2, 'NO_ROOM', /node3.*disk/);
  const nowhere = await refusedMove('refused');
  assertRefused(
    nowhere,
    2,
    'NO_ROOM',
    /node1.*the instance exists.*node2.*drained.*node3.*of disk/,
  );
  await succeed(one, 'gnt-node', 'modify', '--offline', 'yes', TWO);
  assertRefused(await refusedMove('-n', TWO, 'refused'), 2, 'NODE_OFFLINE', /node2/);
  await assertOn(web, ONE);
  await succeed(one, 'gnt-node', 'modify', '--offline', 'no', TWO);
});

test('a node that lacks what the instance names is told before anything is changed', async (t) => {
  await addOs(one, 'alone', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'alone');
  const medium = join(one.paths.root, 'medium.iso');
  await writeFile(medium, Buffer.alloc(64 * 1024));
  const os = await place(t, 'os.example.com', { osType: 'alone' }, MIB);
  assertRefused(await refusedMove('-n', TWO, 'os'), 2, 'OS_NOT_FOUND', /node2.*alone/);
  assertRefused(await refusedMove('os'), 2, 'NO_ROOM', /node2.*alone/);
  await assertOn(os, ONE);
  const image = await place(t, 'image.example.com', {}, MIB);
  await succeed(one, 'gnt-instance', 'modify', '--os-image', medium, 'image');
  await rename(medium, `${medium}.one`);
  assertRefused(await refusedMove('-n', TWO, 'image'), 2, 'IMAGE_NOT_FOUND', /node2.*medium\.iso/);
  await assertOn(image, ONE);
});

test('a link that is cut in the middle is waited for, and the rest goes over the next', async (t) => {
  const web = await place(t, 'cut.example.com', {}, LONG_BYTES);
  const id = await begin(web.name, TWO);
  await untilArriving(two, web.uuid, id);
  const client = new Redis({ path: redis.socket });
  t.after(() => client.disconnect());
  let cuts = 0;
  while ((await jobOf(one, id)).endedAtMs === null && cuts < 4) {
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    cuts += 1;
    await sleep(100);
  }
  assert.ok(cuts > 1);
  assert.equal((await endOf(one, id)).status, 'success');
  await assertOn(web, TWO);
});

test('a target that is killed in the middle leaves the instance where it is, and has nothing', async (t) => {
  const web = await place(t, 'target.example.com');
  const id = await begin(web.name, TWO);
  await untilArriving(two, web.uuid, id);
  await killNode(two);
  assert.ok(existsSync(join(two.paths.disksDir, `copying-${web.uuid}`)));
  await two.startNode('--node', TWO, ...DATA_ADDRESS);
  assert.ok(await nothingOf(two, web.uuid));
  const { error } = await endOf(one, id);
  assert.equal(error?.code, 'NOT_FOUND');
  await assertOn(web, ONE);
  assert.equal(
    await statusOf(one, { opcode: 'INSTANCE_MOVE', name: web.name, node: TWO }),
    'success',
  );
  await assertOn(web, TWO);
});

test('a source that is killed in the middle keeps the instance, and the next move begins anew', async (t) => {
  const web = await place(t, 'source.example.com');
  const id = await begin(web.name, TWO);
  await untilArriving(two, web.uuid, id);
  await killNode(one);
  await one.startNode('--node', ONE, ...DATA_ADDRESS);
  assert.equal(await digestOf(join(one.paths.disksDir, web.uuid, 'disk0.raw')), web.digest);
  assert.equal((await infoOf(one, web.name)).primaryNode, ONE);
  assert.equal(
    await statusOf(one, { opcode: 'INSTANCE_MOVE', name: web.name, node: TWO }),
    'success',
  );
  await assertOn(web, TWO);
});

test('what a copy has left is told by the doctor, and nothing that arrives', async (t) => {
  const web = await place(t, 'left.example.com', {}, LONG_BYTES);
  const left = join(two.paths.disksDir, `copying-${randomUUID()}`);
  await mkdir(left);
  const id = await begin(web.name, TWO);
  await untilArriving(two, web.uuid, id);
  // The copy of some MiB may end before a busy host's doctor looks.
  one.node().kill('SIGSTOP');
  const { findings } = await ask(two, '/v1/doctor', doctorReport).finally(() =>
    one.node().kill('SIGCONT'),
  );
  const told = findings.find(({ check }) => check === 'copies-left');
  assert.equal(told?.message.split(': ').at(-1), `${left} (no record)`);
  await succeed(one, 'gnt-job', 'cancel', String(id));
  await endOf(one, id);
  await killNode(two);
  await two.startNode('--node', TWO, ...DATA_ADDRESS);
  assert.ok(!existsSync(left), 'as the hint says');
});

test('a cancelled move leaves the instance where it is', async (t) => {
  const web = await place(t, 'cancel.example.com', {}, LONG_BYTES);
  const id = await begin(web.name, TWO);
  await untilArriving(two, web.uuid, id);
  await succeed(one, 'gnt-job', 'cancel', String(id));
  assert.equal((await endOf(one, id)).status, 'canceled');
  await assertOn(web, ONE);
});

test('a target whose disk gets full ends the move, and keeps nothing of it', async (t) => {
  // A sparse disk fits at first; another file takes the room during the copy.
  const web = await place(t, 'full.example.com', { disks: [{ sizeBytes: 24 * MIB }] }, 12 * MIB);
  const filler = join(three.paths.disksDir, 'filler');
  t.after(() => rm(filler, { force: true }));
  const id = await begin(web.name, THREE);
  for (;;) {
    const entries = await readdir(three.paths.disksDir);
    if (entries.some((entry) => entry.startsWith('copying-'))) break;
    assert.equal((await jobOf(one, id)).endedAtMs, null, 'it was too fast');
    await sleep(1);
  }
  await run('sh', ['-c', `head -c 64M /dev/zero > ${filler} 2>/dev/null || true`]);
  const { error } = await endOf(one, id);
  assert.equal(error?.code, 'DISK_FULL', JSON.stringify(error));
  assert.match(error.message, /node3/);
  await rm(filler);
  await assertOn(web, ONE);
});

test('two moves at once come through, and a node is emptied by one command', async (t) => {
  const [left, right] = [await place(t, 'left.example.com'), await place(t, 'right.example.com')];
  const moves = [left, right].map(({ name }) => ({ opcode: 'INSTANCE_MOVE', name, node: TWO }));
  assert.deepEqual(await Promise.all(moves.map((move) => statusOf(one, move))), [
    'success',
    'success',
  ]);
  await assertOn(left, TWO);
  await assertOn(right, TWO);
  const unasked = await one.run('gnt-node', ['evacuate', TWO]);
  assertRefused(unasked, 2, 'USAGE', /instance\(s\) from node2/);
  assertRefused(await one.run('gnt-node', ['evacuate', 'no']), 2, 'NODE_NOT_FOUND', /'no'/);
  const { stderr } = await one.run('gnt-node', ['evacuate', '-f', TWO]);
  assert.match(stderr, /node node2\.example\.com evacuated/);
  assert.deepEqual(await readdir(two.paths.disksDir), []);
  await assertOn(left, ONE);
  await assertOn(right, ONE);
});
