import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { addOs, assertRefused, infoOf, statusOf, submit, succeed } from './support/ask-nodes.ts';

/**
 * Two nodes with a real Redis, a shared folder, and a real QEMU. The guest is a boot sector that
 * counts in memory and writes each number to its disk.
 */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'counter.example.com';
const MIB = 1024 * 1024;
const LEASE_S = '15';
const BOOT_SECTOR = Buffer.from(
  [
    '31c0 8ed8 8ed0 bc007c', // ds = ss = 0, a stack below this
    '66ff06007e', // inc dword [0x7e00]
    'be197c b443 b000 cd13', // write a sector by the address packet at 0x7c19
    'ebf0', // repeat
    '1000 0100 007e 0000 0100000000000000', // one sector, from 0:7e00, to sector 1
  ]
    .join('')
    .replaceAll(' ', ''),
  'hex',
);

let redis: RedisServer;
let one: Lab;
let two: Lab;
let folder = '';
let uuid = '';

before(async () => {
  redis = await startRedis({ appendOnly: true });
  folder = await mkdtemp(join(tmpdir(), 'gnt-fo-shared-'));
  await mkdir(join(folder, 'disks'), { mode: 0o700 });
  [one, two] = await Promise.all([createLab('gnt-fo1'), createLab('gnt-fo2')]);
  const url = `unix:${redis.socket}`;
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  const key = one.paths.clusterKeyFile;
  await succeed(two, 'gnt-cluster', 'init', '--store', url, '--cluster-key', key);
  await Promise.all([startOne(), startTwo()]);
  for (const lab of [one, two]) await addOs(lab, 'both', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'both');
  const shared = join(folder, 'disks');
  await succeed(one, 'gnt-cluster', 'modify', '--shared-file-storage-dir', shared);
  const made = await submit(one, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ diskTemplate: 'sharedfile', disks: [{ sizeBytes: MIB }], nics: [{ mode: 'user' }] },
    ...{ osType: 'both', hvparams: { accel: 'tcg' }, beparams: { memoryMiB: 64, vcpus: 1 } },
  });
  assert.equal(made.error, null, JSON.stringify(made.error));
  ({ uuid } = await infoOf(one, NAME));
  await using file = await open(disk(), 'r+');
  await file.write(BOOT_SECTOR, 0, BOOT_SECTOR.length, 0);
  await file.write(Buffer.from([0x55, 0xaa]), 0, 2, 510);
  const started = await submit(one, { opcode: 'INSTANCE_STARTUP', name: NAME });
  assert.equal(started.error, null, JSON.stringify(started.error));
});

after(async () => {
  await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
  await Promise.all([one.stopNode(), two.stopNode()]);
  const leftovers = await untilNone(async () => [
    ...(await one.findLeftovers()),
    ...(await two.findLeftovers()),
  ]);
  const left = await readdir(join(folder, 'disks'));
  await Promise.all([one.dispose(), two.dispose()]);
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
  assert.deepEqual(left, ['gnt-cluster-uuid']);
  assert.deepEqual(leftovers, []);
});

/**
 * Waits until nothing is left. The watcher of a lease counts seconds with a child process, which
 * outlives a killed watcher by less than 1 s.
 */
async function untilNone(find: () => Promise<readonly string[]>): Promise<readonly string[]> {
  for (let tries = 50; ; tries -= 1) {
    const found = await find();
    if (found.length === 0 || tries === 0) return found;
    await sleep(100);
  }
}

const startOne = (): Promise<void> => one.startNode('--node', ONE, '--shared-lease', LEASE_S);
const startTwo = (): Promise<void> => two.startNode('--node', TWO, '--shared-lease', LEASE_S);
const disk = (): string => join(folder, 'disks', uuid, 'disk0.raw');

/** Returns the number that the guest wrote. */
async function count(): Promise<number> {
  await using file = await open(disk(), 'r');
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 512);
  return buffer.readUInt32LE(0);
}

async function untilCounting(): Promise<void> {
  const from = await count();
  for (let left = 600; (await count()) === from; left -= 1) {
    assert.ok(left > 0, 'the guest does not write');
    await sleep(100);
  }
}

/** Returns the state of a node's QEMU process: T is stopped, empty is none. */
function stateOf(lab: Lab): string {
  try {
    const pid = readFileSync(join(lab.paths.vmDir, uuid, 'process'), 'latin1').split(' ')[0] ?? '';
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
}

const isWriting = (lab: Lab): boolean => !['', 'T', 'Z'].includes(stateOf(lab));

/** Polls both QEMU processes and the disk until it is stopped. */
function watch(from: Lab, to: Lab) {
  const seen = { both: 0, writesPaused: 0, wasPaused: false, looks: 0 };
  let isOver = false;
  let atPause: number | undefined;
  const watching = (async () => {
    while (!isOver) {
      const [a, b] = [stateOf(from), stateOf(to)];
      seen.looks += 1;
      if (isWriting(from) && b !== '') seen.both += 1;
      if (a === 'T' && b === '') {
        seen.wasPaused = true;
        const now = await count();
        atPause ??= now;
        if (now !== atPause) seen.writesPaused += 1;
      }
      await sleep(20);
    }
    return seen;
  })();
  return () => {
    isOver = true;
    return watching;
  };
}

test('an instance is not taken from a node that lives, and not without shared disks', async () => {
  await untilCounting();
  const refused = await one.run('gnt-instance', ['failover', '-f', '-n', TWO, NAME]);
  assertRefused(refused, 2, 'INSTANCE_STATE', /answers/);
  const local = { opcode: 'INSTANCE_CREATE', name: 'local.example.com', node: ONE, install: false };
  const more = {
    start: false,
    osType: 'both',
    nics: [{ mode: 'user' }],
    disks: [{ sizeBytes: MIB }],
  };
  assert.equal(await statusOf(one, { ...local, ...more }), 'success');
  const ask = { opcode: 'INSTANCE_FAILOVER', name: local.name, node: TWO };
  assert.equal(await statusOf(two, ask), 'NOT_SUPPORTED');
  await submit(one, { opcode: 'INSTANCE_REMOVE', name: local.name });
});

test('a daemon that hangs loses its instance, whose machine was paused before, and then ends it', async () => {
  await untilCounting();
  const stop = watch(one, two);
  one.node().kill('SIGSTOP');
  try {
    const job = await submit(two, { opcode: 'INSTANCE_FAILOVER', name: NAME, node: TWO });
    assert.equal(job.error, null, JSON.stringify(job.error));
    await untilCounting();
  } finally {
    one.node().kill('SIGCONT');
  }
  const seen = await stop();
  assert.deepEqual({ ...seen, looks: 0 }, { both: 0, writesPaused: 0, wasPaused: true, looks: 0 });
  assert.equal((await infoOf(two, NAME)).primaryNode, TWO);
  await untilForgotten(one);
  assert.equal(stateOf(one), '');
  await untilCounting();
});

test('a daemon that was killed loses it too, and finds that out when it starts', async () => {
  const stop = watch(two, one);
  two.node().kill('SIGKILL');
  const job = await submit(one, { opcode: 'INSTANCE_FAILOVER', name: NAME, node: ONE });
  assert.equal(job.error, null, JSON.stringify(job.error));
  await untilCounting();
  const seen = await stop();
  assert.deepEqual({ ...seen, looks: 0 }, { both: 0, writesPaused: 0, wasPaused: true, looks: 0 });
  await startTwo();
  await untilForgotten(two);
  assert.equal((await infoOf(two, NAME)).primaryNode, ONE);
  await untilCounting();
});

test('a store that hangs pauses the machine, which goes on when it is back', async () => {
  await untilCounting();
  redis.pause();
  try {
    await untilState((state) => state === 'T');
  } finally {
    redis.resume();
  }
  await untilState((state) => state !== 'T');
  await untilCounting();
});

async function untilState(is: (state: string) => boolean): Promise<void> {
  for (let left = 600; !is(stateOf(one)); left -= 1) {
    assert.ok(left > 0, `it is still ${stateOf(one)}`);
    await sleep(50);
  }
}

/** Waits until the node has removed its link to the disks, because they belong to another node. */
async function untilForgotten(lab: Lab): Promise<void> {
  for (let left = 600; (await readdir(lab.paths.disksDir)).includes(uuid); left -= 1) {
    assert.ok(left > 0, 'the node did not notice');
    await sleep(100);
  }
}
