import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { createWritingSector, findWrongSector } from '../noded/vmm/writing-guest.ts';

const NAME = 'writer.example.com';
const DISK_BYTES = 16 * MIB;
const STATE_LIMIT_MS = 60_000;
let lab: Lab;
/** A small file system outside the node's root, so that its mount does not count as a leftover. */
let disks: string;
let other: string;

before(async () => {
  lab = await createLab('gnt-full');
  disks = await mkdtemp('/tmp/gnt-disks-');
  await run('mount', ['-t', 'tmpfs', '-o', 'size=80m,mode=700', 'gnt-test-full', disks]);
  await mkdir(lab.paths.stateDir, { recursive: true });
  await symlink(disks, lab.paths.disksDir);
  await writeFile(join(lab.paths.root, 'image.raw'), Buffer.alloc(MIB), { mode: 0o644 });
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  const status = await lab.stopNode();
  await run('umount', [disks]);
  await rmdir(disks);
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.equal(status, 0);
  assert.deepEqual(leftovers, []);
});

/** Runs the doctor, which always finds too little room on a file system of 80 MiB. */
async function doctor(): Promise<string> {
  const { status, stdout } = await lab.run('gnt-node', ['doctor']);
  assert.equal(status, 1);
  return stdout;
}

async function gnt(...words: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run('gnt-instance', words);
  assert.equal(status, 0, stderr);
  return stdout;
}

async function info(): Promise<InstanceInfo> {
  return instanceInfo.parse(JSON.parse(await gnt('info', '--json', NAME)));
}

/** Polls, because clients get no event for it. */
async function untilStatus(wanted: InstanceInfo['status']): Promise<InstanceInfo> {
  const deadlineMs = performance.now() + STATE_LIMIT_MS;
  for (;;) {
    const found = await info();
    if (found.status === wanted) return found;
    assert.ok(performance.now() < deadlineMs, `${found.status}: ${found.explanation}`);
    await sleep(200);
  }
}

async function disk(): Promise<Buffer> {
  return readFile(join(lab.paths.disksDir, (await info()).uuid, 'disk0.raw'));
}

test('a guest that finds the disks full stands still, and says so everywhere', async () => {
  const resources = ['-s', `${DISK_BYTES / MIB}M`, '-B', 'memory=64M', '-H', 'accel=tcg'];
  const image = ['--os-image', join(lab.paths.root, 'image.raw')];
  await gnt('add', '--no-install', '--no-nics', ...image, ...resources, NAME);
  const { uuid } = await info();
  // A foreign file leaves room for half a disk.
  other = join(disks, 'other');
  await run('fallocate', ['--length', String(72 * MIB), other]);
  {
    await using file = await open(join(lab.paths.disksDir, uuid, 'disk0.raw'), 'r+');
    await file.write(createWritingSector(DISK_BYTES), 0, 512, 0);
  }
  await gnt('startup', NAME);
  const paused = await untilStatus('paused');
  assert.equal(paused.running?.halt?.reason, 'disk-full');
  assert.notEqual(findWrongSector(await disk()), undefined, 'it has not written everything');

  const fields = ['list', '--no-headers', '-o', 'status,paused'];
  assert.equal((await gnt(...fields)).trim(), 'paused disk-full');
  assert.match(await gnt('info', NAME), /State: paused at a write.*is full/);
  const { body } = await askSocket(lab.paths.nodedSocket, '/metrics');
  assert.match(body, /^gnt_guests_halted\{reason="disk-full"\} 1$/m);
  assert.match(body, /^gnt_instances\{status="paused"\} 1$/m);
  const found = await doctor();
  assert.match(found, /^warning +paused: .*writer\.example\.com/m);
  assert.match(found, /^error +disk: \d+ MiB of \d+ MiB free below .*\/disks/m);
});

test('the daemon after this one knows it, and lets it go on when there is room', async () => {
  assert.equal(await lab.stopNode(), 0);
  await lab.startNode();
  const paused = await untilStatus('paused');
  assert.equal(paused.running?.halt?.reason, 'disk-full');
  await rm(other);
  await untilStatus('running');
  const deadlineMs = performance.now() + STATE_LIMIT_MS;
  while (findWrongSector(await disk()) !== undefined) {
    assert.ok(performance.now() < deadlineMs, 'the guest does not go on');
    await sleep(200);
  }
  assert.doesNotMatch(await doctor(), /^warning +paused/m);
});
