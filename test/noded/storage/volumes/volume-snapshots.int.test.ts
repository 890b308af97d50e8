import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { createVolumeDriver } from '../../../../noded/storage/drivers/volumes/volume-driver.ts';
import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { InstanceFolders } from '../../../../noded/storage/instance-folders.ts';
import { instanceRecord } from '../../support/records.ts';
import { createMemoryVolumes } from './memory-volumes.ts';
import { HERE, uuidOf } from './volume-suite.ts';

const INSTANCE = uuidOf(1);
const [A, B, ONE, TWO, NEXT] = [10, 11, 20, 21, 30].map(uuidOf) as [
  ...[string, string, string, string, string],
];
const GROUP = { name: 'xenvg', uuid: 'g', sizeBytes: 400, freeBytes: 100, extentBytes: 4 };
const POOL = {
  ...{ name: 'thin', isPool: true, isZeroing: true, tags: [], sizeBytes: 400 },
  ...{ usedShare: 0.5, dataShare: 0.5 },
};
const disk = (uuid: string, pool?: string): InstanceRecord['disks'][number] => ({
  ...{ uuid, name: null, sizeBytes: 8, vg: 'xenvg' },
  ...(pool !== undefined && { pool }),
});
const made = instanceRecord(
  { name: 'web1' },
  {
    ...{ uuid: INSTANCE, diskTemplate: 'plain', installState: 'installed' },
    disks: [disk(A, 'thin'), disk(B, 'thin')],
  },
);
const snapshotOf = (uuid: string, name: string, disks = made.disks) => ({
  ...{ uuid, name, takenAtMs: 0, wasRunning: false, instanceId: made.instanceId },
  ...{ installState: 'installed' as const, disks, hostKeys: null },
});

/** Creates the volumes of both disks and others of the instance, all in a thin pool. */
async function lab(t: TestContext, ...others: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-volume-snapshots-'));
  t.after(() => rm(dir, { recursive: true }));
  await mkdir(join(dir, INSTANCE));
  const tags = [`gnt:instance=${INSTANCE}:g`];
  const names = [`${A}.disk`, `${B}.disk`, ...others];
  const given: readonly (Pick<Volume, 'name'> & Partial<Volume>)[] = [
    ...names.map((name) => ({ name, tags, pool: 'thin' })),
    POOL,
  ];
  const memory = createMemoryVolumes(given, [GROUP]);
  // A volume is held, and its content synced, before it is cloned.
  for (const name of names) await writeFile(join(dir, name), '');
  const pathOf = ({ name }: { readonly name: string }): string => join(dir, name);
  const system = { ...memory.system, pathOf };
  const { snapshots } = createVolumeDriver(new InstanceFolders(dir), { ...HERE, system });
  const commit = async (): Promise<void> => void memory.calls.push('commit');
  const how = { signal: t.signal, onProgress: () => undefined, commit, mayCopy: false };
  const folders = () => readdir(join(dir, INSTANCE));
  return { ...memory, snapshots, folders, how: { ...how, machine: undefined } };
}

/** A paused or running guest, whose pauses are among the calls. */
const guest = (calls: string[], resume = async (): Promise<void> => void calls.push('resume')) => ({
  isRunning: () => true,
  pause: async () => void calls.push('pause'),
  resume,
});

test('a snapshot clones every disk, and counts after its record is committed', async (t) => {
  const { snapshots, calls, how, folders } = await lab(t);
  await snapshots.take(made, ONE, how);
  assert.deepEqual(calls, [
    `clone ${A}.disk ${A}.snapshotting-${ONE} false`,
    `clone ${B}.disk ${B}.snapshotting-${ONE} false`,
    'commit',
    `rename ${A}.snapshotting-${ONE} ${A}.snapshot-${ONE}`,
    `rename ${B}.snapshotting-${ONE} ${B}.snapshot-${ONE}`,
  ]);
  assert.deepEqual(await folders(), []);
});

test('a running guest stands still from the first disk to the last', async (t) => {
  const { snapshots, calls, how } = await lab(t);
  await snapshots.take(made, ONE, { ...how, machine: guest(calls) });
  assert.deepEqual(calls.slice(0, 5), [
    'pause',
    `clone ${A}.disk ${A}.snapshotting-${ONE} false`,
    `clone ${B}.disk ${B}.snapshotting-${ONE} false`,
    ...['resume', 'commit'],
  ]);
});

test('a snapshot that fails leaves the disks and earlier snapshots alone', async (t) => {
  const earlier = `${A}.snapshot-${TWO}`;
  const { snapshots, calls, how, list, folders, failAt } = await lab(t, earlier);
  failAt(`clone ${B}`);
  const stored = { ...made, snapshots: [snapshotOf(TWO, 'two')] };
  await assert.rejects(snapshots.take(stored, ONE, how), /failed: clone/);
  assert.ok(!calls.includes('commit'));
  const names = list().map((line) => line.split(' ')[0]);
  assert.deepEqual(names, [`${A}.disk`, `${B}.disk`, earlier, 'thin']);
  assert.deepEqual(await folders(), []);
});

test('a guest that may still be paused is marked for the next daemon', async (t) => {
  const { snapshots, calls, how, folders } = await lab(t);
  const machine = guest(calls, () => Promise.reject(new Error('QEMU does not answer')));
  await assert.rejects(snapshots.take(made, ONE, { ...how, machine }));
  assert.ok(!calls.includes('commit'));
  assert.deepEqual(await folders(), [`snapshotting-${ONE}`]);
});

test('a snapshot needs every disk of the record', async (t) => {
  const { snapshots, calls, how } = await lab(t);
  const more = { ...made, disks: [...made.disks, disk(uuidOf(12), 'thin')] };
  await assert.rejects(snapshots.take(more, ONE, how), { code: 'DISK_MISSING', message: /disk 2/ });
  assert.deepEqual(calls, []);
});

test('only thin disks can have snapshots', async (t) => {
  const { snapshots } = await lab(t);
  await snapshots.check(made, false);
  const thick = { ...made, disks: [disk(A, 'thin'), disk(B)] };
  await assert.rejects(snapshots.check(thick, false), {
    ...{
      code: 'NOT_SUPPORTED',
      message: /^disk 1 of 'web1'/,
      details: { name: 'web1', disks: [1] },
    },
  });
});

test('a restore puts clones of the snapshot in the place of the disks, and keeps the snapshot', async (t) => {
  const kept = [`${A}.snapshot-${ONE}`, `${B}.snapshot-${ONE}`];
  const { snapshots, calls, how, list } = await lab(t, ...kept);
  const one = snapshotOf(ONE, 'one');
  await snapshots.restore({ ...made, snapshots: [one] }, one, { ...how, restoreId: NEXT });
  const after = calls.indexOf('commit');
  assert.deepEqual(calls.slice(0, after), [
    `clone ${A}.snapshot-${ONE} ${A}.next-${NEXT} true`,
    `clone ${B}.snapshot-${ONE} ${B}.next-${NEXT} true`,
  ]);
  assert.deepEqual(calls.slice(after + 1).toSorted(), [
    ...[`remove ${A}.disk`, `remove ${B}.disk`],
    ...[`rename ${A}.next-${NEXT} ${A}.disk`, `rename ${B}.next-${NEXT} ${B}.disk`],
  ]);
  const names = list().map((line) => line.split(' ')[0]);
  assert.deepEqual(names.toSorted(), [`${A}.disk`, `${B}.disk`, ...kept, 'thin'].toSorted());
});

test('a restore without every disk of the snapshot is refused, and one that fails is undone', async (t) => {
  const one = snapshotOf(ONE, 'one');
  const stored = { ...made, snapshots: [one] };
  const half = await lab(t, `${A}.snapshot-${ONE}`, `${B}.snapshot-${TWO}`);
  const restoring = half.snapshots.restore(stored, one, { ...half.how, restoreId: NEXT });
  await assert.rejects(restoring, { code: 'DISK_MISSING' });
  assert.deepEqual(half.calls, []);
  const whole = await lab(t, `${A}.snapshot-${ONE}`, `${B}.snapshot-${ONE}`);
  whole.failAt(`clone ${B}`);
  const failing = whole.snapshots.restore(stored, one, { ...whole.how, restoreId: NEXT });
  await assert.rejects(failing, /failed: clone/);
  assert.ok(!whole.list().some((line) => line.includes('next')));
  assert.ok(!whole.calls.includes('commit'));
});

test('a removed snapshot cannot be restored from its removal on, and others stay', async (t) => {
  const { snapshots, calls } = await lab(t, `${A}.snapshot-${ONE}`, `${A}.snapshot-${TWO}`);
  await snapshots.remove(made, ONE, async () => void calls.push('commit'));
  assert.deepEqual(calls, [
    `rename ${A}.snapshot-${ONE} ${A}.snapshotting-${ONE}`,
    'commit',
    `remove ${A}.snapshotting-${ONE}`,
  ]);
});

test('snapshots that the record does not name are listed', async (t) => {
  const { snapshots } = await lab(t, `${A}.snapshot-${ONE}`, `${A}.snapshot-${TWO}`);
  const stored = { ...made, snapshots: [snapshotOf(ONE, 'one')] };
  assert.deepEqual(await snapshots.listForgotten(stored), [`xenvg/${A}.snapshot-${TWO}`]);
});
