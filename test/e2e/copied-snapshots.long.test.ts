import assert from 'node:assert/strict';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { createWritingSector, findWrongSector } from '../noded/hypervisor/writing-guest.ts';
import { type OtherDisks, putDisksOn } from './support/disks-on.ts';
import { endLab } from './support/end-lab.ts';

const NAME = 'writer.example.com';
/** More than the guest can fill in the time of this file. */
const DISK_BYTES = 64 * MIB;
const SECTOR_BYTES = 512;
const LIMIT_MS = 60_000;
let lab: Lab;
let ext4: OtherDisks;

before(async () => {
  lab = await createLab('gnt-copied');
  ext4 = await putDisksOn('ext4', lab);
  await writeFile(join(lab.paths.root, 'image.raw'), Buffer.alloc(MIB), { mode: 0o644 });
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
  await ext4.release();
});

async function gnt(...words: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run('gnt-instance', words);
  assert.equal(status, 0, stderr);
  return stdout + stderr;
}

async function info(): Promise<InstanceInfo> {
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout));
}

const folder = async (): Promise<string> => join(ext4.folder, (await info()).uuid);
const writtenTo = async (path: string): Promise<number> =>
  (findWrongSector(await readFile(path)) ?? DISK_BYTES / SECTOR_BYTES) * SECTOR_BYTES;

/** @returns how many bytes of the disk the guest has filled */
async function untilWritten(beyond: number): Promise<number> {
  const path = join(await folder(), 'disk0.raw');
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const written = await writtenTo(path);
    if (written > beyond) return written;
    assert.ok(performance.now() < deadlineMs, `the guest does not get beyond ${written} bytes`);
    await sleep(100);
  }
}

test('a copy of a guest that writes is of one moment, is made when asked for alone, and comes back', async () => {
  const resources = ['-s', `${DISK_BYTES / MIB}M`, '-B', 'memory=64M', '-H', 'accel=tcg'];
  const image = ['--os-image', join(lab.paths.root, 'image.raw')];
  await gnt('add', '--no-install', '--no-nics', ...image, ...resources, NAME);
  {
    await using file = await open(join(await folder(), 'disk0.raw'), 'r+');
    await file.write(createWritingSector(DISK_BYTES), 0, SECTOR_BYTES, 0);
  }
  await gnt('startup', NAME);
  const written = await untilWritten(MIB);
  const refused = await lab.run('gnt-instance', ['snapshot', NAME, 'one']);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /error\[NOT_SUPPORTED\].*\nhint: gnt-instance snapshot --copy/);
  assert.match(await gnt('snapshot', '--copy', NAME, 'one'), /the guest stood still for \d+ ms/);
  const [{ uuid } = { uuid: '' }] = (await info()).snapshots;
  const kept = join(await folder(), `snapshot-${uuid}`, 'disk0.raw');
  const end = await writtenTo(kept);
  assert.ok(end >= written && end < DISK_BYTES, `${end} of ${written} bytes`);
  assert.ok((await readFile(kept)).subarray(end).every((byte) => byte === 0));
  await untilWritten(end);
  await gnt('shutdown', '--timeout=0', NAME);
  await gnt('restore-snapshot', '--force', NAME, 'one');
  assert.equal(await writtenTo(join(await folder(), 'disk0.raw')), end);
  await gnt('remove-snapshot', '--force', NAME, 'one');
  const left = (await readdir(await folder())).filter((name) => name.startsWith('snap'));
  assert.deepEqual(left, []);
});
