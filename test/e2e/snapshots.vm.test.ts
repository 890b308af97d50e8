import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { QmpClient } from '../../noded/hypervisor/qmp-client.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { createWritingSector, findWrongSector } from '../noded/hypervisor/writing-guest.ts';
import { type OtherDisks, putDisksOn } from './support/disks-on.ts';

const NAME = 'writer.example.com';
/** More than the guest can fill in the time of this file. */
const DISK_BYTES = 64 * MIB;
const SECTOR_BYTES = 512;
const LIMIT_MS = 60_000;
let lab: Lab;
let btrfs: OtherDisks;
let disks: string;

before(async () => {
  lab = await createLab('gnt-snap');
  btrfs = await putDisksOn('btrfs', lab);
  disks = btrfs.folder;
  await writeFile(join(lab.paths.root, 'image.raw'), Buffer.alloc(MIB), { mode: 0o644 });
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  const status = await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await btrfs.release();
  assert.equal(status, 0);
  assert.deepEqual(leftovers, []);
});

async function gnt(...words: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run('gnt-instance', words);
  assert.equal(status, 0, stderr);
  return stdout;
}

async function info(): Promise<InstanceInfo> {
  return instanceInfo.parse(JSON.parse(await gnt('info', '--json', NAME)));
}

const folder = async (): Promise<string> => join(disks, (await info()).uuid);
const disk = async (): Promise<Buffer> => readFile(join(await folder(), 'disk0.raw'));

/** @returns how many bytes of the disk the guest has filled */
async function untilWritten(beyond: number): Promise<number> {
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const written = (findWrongSector(await disk()) ?? DISK_BYTES / SECTOR_BYTES) * SECTOR_BYTES;
    if (written > beyond) return written;
    assert.ok(performance.now() < deadlineMs, `the guest does not get beyond ${written} bytes`);
    await sleep(100);
  }
}

test('a snapshot of a guest that writes has all that it wrote before, and nothing else', async () => {
  const resources = ['-s', `${DISK_BYTES / MIB}M`, '-B', 'memory=64M', '-H', 'accel=tcg'];
  const image = ['--os-image', join(lab.paths.root, 'image.raw')];
  await gnt('add', '--no-install', '--no-nics', ...image, ...resources, NAME);
  {
    await using file = await open(join(await folder(), 'disk0.raw'), 'r+');
    await file.write(createWritingSector(DISK_BYTES), 0, SECTOR_BYTES, 0);
  }
  await gnt('startup', NAME);
  const written = await untilWritten(MIB);
  const { status, stderr } = await lab.run('gnt-instance', ['snapshot', NAME, 'one']);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /the guest stood still for \d+ ms/);
  const [{ uuid } = { uuid: '' }] = (await info()).snapshots;
  const kept = await readFile(join(await folder(), `snapshot-${uuid}`, 'disk0.raw'));
  const end = (findWrongSector(kept) ?? 0) * SECTOR_BYTES;
  assert.ok(end >= written && end < DISK_BYTES, `${end} of ${written} bytes`);
  assert.ok(kept.subarray(end).every((byte) => byte === 0));
  await untilWritten(end);
  assert.deepEqual(
    (await gnt('list-snapshots', '--no-headers', '-o', 'name,running', NAME)).split(/\s+/),
    ['one', 'Y', ''],
  );
});

test('a guest that a killed daemon left standing goes on with the next one', async () => {
  const path = join(await folder(), 'snapshotting-00000000-0000-4000-8000-000000000000');
  const file = join(await folder(), 'disk0.raw');
  const { uuid } = await info();
  await killNode(lab);
  // What it leaves when it is killed between stopping the guest and letting it go on.
  await mkdir(path);
  const qmp = await QmpClient.connect({
    socketPath: join(lab.paths.vmDir, uuid, 'qmp'),
    onEvent: () => undefined,
    timeoutMs: LIMIT_MS,
  });
  await qmp.execute('stop');
  assert.match(JSON.stringify(await qmp.execute('query-status')), /"paused"/);
  qmp.close();
  const standing = findWrongSector(await readFile(file)) ?? 0;
  await lab.startNode();
  await untilWritten(standing * SECTOR_BYTES);
  assert.deepEqual(
    (await readdir(await folder())).filter((name) => name.startsWith('snapshotting')),
    [],
  );
});

test('a stopped instance gets its disks back, and a running one does not', async () => {
  const refused = await lab.run('gnt-instance', ['restore-snapshot', '--force', NAME, 'one']);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /error\[INSTANCE_STATE\].*is running/);
  await gnt('shutdown', '--timeout=0', NAME);
  await gnt('restore-snapshot', '--force', NAME, 'one');
  const wrong = findWrongSector(await disk());
  assert.ok(wrong !== undefined && wrong > 64, String(wrong));
  await gnt('startup', NAME);
  await untilWritten(wrong * SECTOR_BYTES);
  await gnt('remove-snapshot', '--force', NAME, 'one');
  assert.deepEqual(
    (await readdir(await folder())).filter((name) => name.startsWith('snap')),
    [],
  );
  const unknown = await lab.run('gnt-instance', ['remove-snapshot', '--force', NAME, 'one']);
  assert.match(unknown.stderr, /error\[NOT_FOUND\]: '.*' has no snapshot 'one'/);
});
