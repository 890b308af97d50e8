import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import { createHypervisor } from '../../../../noded/vmm/hypervisor.ts';
import { openConsole, tinyHost, tinySpec, writeTinyDisk } from '../../vmm/tiny-guest.ts';
import { UNWATCHED } from '../../support/unwatched.ts';
import { assertClean, HERE, SIZE, uuidOf } from './volume-suite.ts';
import { testKills } from './zfs-kills.ts';
import {
  before,
  command,
  DATASET,
  disk,
  disks,
  first,
  folder,
  list,
  nothing,
  POOL,
  record,
  restore,
  second,
  snapshots,
  take,
  textOf,
  withSnapshots,
  write,
  zfs,
} from './zfs-scene.ts';

/** Runs in the machine of zfs-volumes.hand.test.ts, whose `/dev/vdb` belongs to the test. */
/** An emulated machine on a busy host writes some hundred megabytes. */
const FILL_LIMIT_MS = 600_000;
const LVM_CONF = '/etc/lvm/lvmlocal.conf';

test('a dataset that is not there is refused by name, and so are odd sizes', async () => {
  await mkdir(join(folder, 'disks'), { recursive: true });
  await run('zpool', ['create', '-O', 'mountpoint=none', POOL, '/dev/vdb']);
  await run('sh', [
    '-c',
    `printf 'devices {\\n\\tglobal_filter=["r|^/dev/zd|"]\\n}\\n' >${LVM_CONF}`,
  ]);
  await assert.rejects(disks.checkSizes(before.disks, before), {
    code: 'HOST_PREREQUISITE',
    message: "this node has no ZFS dataset 'tank/vms'",
    hint: /Its pools are: tank\. .*zfs create/,
  });
  await command('create', DATASET);
  await assert.rejects(disks.checkSizes([disk(10, SIZE + 512)], before), { code: 'VALIDATION' });
  await disks.checkSizes(before.disks, before);
});

test('a host whose LVM looks into volumes of ZFS is refused, with the filter that it lacks', async () => {
  await run('mv', [LVM_CONF, `${LVM_CONF}.off`]);
  await assert.rejects(disks.checkSizes(before.disks, before), {
    code: 'HOST_PREREQUISITE',
    hint: /global_filter/,
  });
  // The refusal is necessary: LVM finds the group that a guest wrote.
  await command('create', '-s', '-V', `${16 * MIB}`, `${DATASET}/guest`);
  const path = `/dev/zvol/${DATASET}/guest`;
  await run('sh', ['-c', `until [ -b ${path} ]; do sleep 0.1; done; udevadm settle`]);
  await run('pvcreate', ['--yes', path]);
  await run('vgcreate', ['ofguest', path]);
  assert.match((await run('vgs', [])).stdout, /ofguest/);
  await run('vgchange', ['--activate', 'n', 'ofguest']);
  await run('mv', [`${LVM_CONF}.off`, LVM_CONF]);
  assert.doesNotMatch((await run('vgs', [])).stdout, /ofguest/);
  await disks.checkSizes(before.disks, before);
  await zfs.remove({ group: DATASET, name: 'guest' });
});

test('disks are larger together than the pool, hold zeros, and take nothing', async () => {
  await command('create', '-s', '-V', '4194304', `${DATASET}/precious`);
  const large = record([disk(10, 2 * GIB), disk(11, 2 * GIB)]);
  await disks.checkSizes(large.disks, large);
  await disks.createEmpty(large);
  assert.equal(await textOf(large), '\0'.repeat(6));
  assert.deepEqual(await disks.listAbsent(large), []);
  assert.equal(await disks.isPoolFull(large), false);
  await disks.remove(large);
  assert.deepEqual(await list(), []);
});

test('a disk is grown, emptied and reinstalled without what was there', async () => {
  await disks.createEmpty(before);
  await write(before, 'before');
  await disks.grow(before, 1, 2 * SIZE);
  const grown = record([disk(10), disk(11, 2 * SIZE)]);
  assert.equal((await readFile(disks.pathOf(grown, 1))).length, 2 * SIZE);
  assert.equal(await textOf(grown), 'before');
  const installed = { ...grown, instanceId: uuidOf(3) };
  assert.equal((await disks.roomBeside(grown, MIB)).isEnough, true);
  {
    using beside = disks.openForInstall(installed, { kind: 'beside', neededBytes: MIB });
    await beside.create();
    await writeFile(beside.pathOf(1), 'after!', { flag: 'r+' });
    await beside.sync();
    await beside.takeOver();
  }
  assert.equal(await textOf(installed), 'after!');
  await disks.createEmpty(installed);
  assert.equal(await textOf(installed), '\0'.repeat(6));
  await disks.remove(installed);
  assert.deepEqual(await list(), []);
});

test('a machine has the volume by a descriptor, nobody else gets it, and it grows', async () => {
  await disks.createEmpty(before);
  const path = disks.pathOf(before, 0);
  await writeTinyDisk('/var/tmp/tiny');
  await writeFile(path, await readFile('/var/tmp/tiny'), { flag: 'r+' });
  const machine = await createHypervisor(tinyHost('/var/tmp/vm')).start(tinySpec(path));
  try {
    using console = await openConsole(machine);
    await console.sees('up\r\n');
    await assert.rejects(disks.checkUnused(before), { code: 'DISK_IN_USE' });
    await assert.rejects(disks.hold(before), { code: 'DISK_IN_USE' });
    await assert.rejects(disks.remove(before), { code: 'DISK_IN_USE' });
    await disks.growBelow(before, 0, 2 * SIZE);
    await machine.growDisk(0, 2 * SIZE);
  } finally {
    await machine.kill();
  }
  const grown = record([disk(10, 2 * SIZE), disk(11)]);
  await (await disks.hold(grown))[Symbol.asyncDispose]();
  await disks.remove(grown);
});

test('a snapshot is of one moment, is restored more than once, and goes with what it kept', async () => {
  await disks.createEmpty(before);
  await write(before, 'first!');
  const seen: string[] = [];
  const machine = {
    isRunning: () => true,
    pause: async () => void seen.push('pause'),
    resume: async () => void seen.push('resume'),
  };
  await snapshots.check(before, true);
  const { stillMs } = await snapshots.take(before, first, {
    ...UNWATCHED,
    ...{ mayCopy: true, machine, commit: async () => void seen.push('commit') },
  });
  process.stdout.write(`the guest stood still for ${Math.round(stillMs)} ms\n`);
  assert.deepEqual(seen, ['pause', 'resume', 'commit']);
  assert.equal(await snapshots.isUnfinished(before.uuid), false);
  const one = withSnapshots(before, first);
  await write(one, 'second');
  await take({ disks, snapshots }, one, second, nothing);
  const both = withSnapshots(before, first, second);
  await write(both, 'third!');
  await disks.grow(both, 1, 2 * SIZE);
  const grown = { ...both, disks: [disk(10), disk(11, 2 * SIZE)] };
  await restore({ disks, snapshots }, grown, uuidOf(30), nothing);
  assert.equal(await textOf(both), 'first!');
  assert.equal((await readFile(disks.pathOf(both, 1))).length, SIZE);
  const turned = { ...both, snapshots: both.snapshots.toReversed() };
  await restore({ disks, snapshots }, turned, uuidOf(31), nothing);
  assert.equal(await textOf(both), 'second');
  assert.deepEqual(await snapshots.listForgotten(both), []);
  assert.equal((await snapshots.listForgotten(before)).length, 4);
  await snapshots.remove(both, second, nothing);
  assert.equal(await textOf(both), 'second');
  await restore({ disks, snapshots }, one, uuidOf(32), nothing);
  assert.equal(await textOf(one), 'first!');
  await snapshots.remove(one, first, nothing);
  assert.equal(await textOf(before), 'first!');
  assert.deepEqual(await list(), [`${uuidOf(10)}.disk`, `${uuidOf(11)}.disk`]);
  await disks.remove(before);
  assert.deepEqual(await list(), []);
});

testKills();

test("an administrator's snapshots of a disk stay: what would take them along is refused", async () => {
  await disks.createEmpty(before);
  const [{ uuid } = disk(0)] = before.disks;
  const taken = `${DATASET}/${uuid}.disk@daily`;
  await command('snapshot', taken);
  const refused = { code: 'CONFLICT', hint: new RegExp(`zfs destroy ${taken}`) };
  const begin = (): Promise<void> => assert.fail('it was begun');
  await assert.rejects(disks.remove(before, begin), refused);
  await assert.rejects(disks.change(before, [disk(11)], begin), refused);
  await assert.rejects(disks.roomBeside(before, 0), refused);
  await assert.rejects(disks.checkOverwrite(before), refused);
  await assert.rejects(disks.createEmpty(before), refused);
  // Snapshots do not prevent a disk from growing.
  await disks.grow(before, 0, 2 * SIZE);
  // A snapshot made between the check and the removal keeps the volume.
  await assert.rejects(zfs.remove({ group: DATASET, name: `${uuid}.disk` }));
  assert.ok((await list()).includes(`${uuid}.disk@daily`));
  await command('destroy', taken);
  await disks.remove(before);
  assert.deepEqual(await list(), []);
});

test('volumes of another node are refused, and what was received of a dataset is nobody of ours', async () => {
  await disks.createEmpty(before);
  const other = { ...HERE, nodeName: 'node2', owns: (node: string): boolean => node === 'node2' };
  const parts = { zfs: { system: zfs, ...other } };
  const elsewhere = createInstanceDisks(join(folder, 'disks'), parts);
  const refused = { code: 'CONFLICT', message: /volumes of the node node1/, hint: /zfs inherit/ };
  await assert.rejects(elsewhere.checkSizes([disk(12)], before), refused);
  await assert.rejects(elsewhere.settle(before), refused);
  await command('snapshot', '-r', `${DATASET}@backup`);
  await run('sh', ['-c', `zfs send -R ${DATASET}@backup | zfs receive ${POOL}/copy`]);
  for (const name of await list()) if (name.includes('@')) await command('destroy', `${DATASET}/${name}`); // prettier-ignore
  await command('destroy', `${DATASET}@backup`);
  await disks.remove(before);
  assert.deepEqual(await list(), []);
  const copied = await command('list', '-H', '-r', '-t', 'volume', '-o', 'name', `${POOL}/copy`);
  assert.match(copied, new RegExp(`${POOL}/copy/${uuidOf(10)}\\.disk`));
  await run('udevadm', ['settle']);
  await command('destroy', '-r', `${POOL}/copy`);
});

test('a device that udev has not named yet is waited for, and an old name leads nowhere', async () => {
  await disks.createEmpty(before);
  await run('udevadm', ['control', '--stop-exec-queue']);
  const [from, to] = [`${uuidOf(10)}.disk`, `${uuidOf(10)}.leaving`];
  let isRenamed = false;
  const renaming = zfs.rename({ group: DATASET, name: from }, to).then(() => (isRenamed = true));
  await run('sh', ['-c', `until zfs list ${DATASET}/${to}; do sleep 0.1; done; sleep 2`]);
  assert.equal(isRenamed, false);
  assert.equal(await zfs.isThere({ group: DATASET, name: from }), false);
  await assert.rejects(disks.activate(before), { code: 'DISK_MISSING' });
  await run('udevadm', ['control', '--start-exec-queue']);
  await renaming;
  await disks.settle(before);
  await disks.activate(before);
  await disks.remove(before);
});

test('a pool that is full takes nothing new, and a guest that it stopped waits', async () => {
  const large = record([disk(10, 1024 * MIB), disk(11)]);
  await disks.createEmpty(large);
  const fill = `dd if=/dev/urandom of=${disks.pathOf(large, 0)} bs=1M oflag=direct 2>&1 || true`;
  // The error of a guest's write if QEMU did not pause it.
  const filled = await run('sh', ['-c', fill], { timeoutMs: FILL_LIMIT_MS });
  assert.match(filled.stdout, /No space left on device/);
  await run('zpool', ['sync']);
  assert.equal(await disks.isPoolFull(large), true);
  await assert.rejects(snapshots.check(large, true), { code: 'DISK_SPACE', hint: /tank\/vms/ });
  await assert.rejects(disks.checkSizes([disk(12)], large), { code: 'DISK_SPACE' });
  await disks.remove(large);
  await run('zpool', ['sync']);
  assert.equal(await disks.isPoolFull(large), null);
  await disks.checkSizes(before.disks, before);
});

test("partitions that a guest makes are none of the host's", async () => {
  await disks.createEmpty(before);
  const path = disks.pathOf(before, 0);
  const table = Buffer.alloc(512);
  // One primary partition, which begins at 1 MiB.
  table.set([0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0], 446);
  table.set([0x55, 0xaa], 510);
  await writeFile(path, table, { flag: 'r+' });
  await run('sh', ['-c', `blockdev --rereadpt ${path} || true; udevadm settle`]);
  assert.equal((await run('sh', ['-c', 'ls /dev/zd*p1 || true'])).stdout, '');
  await disks.remove(before);
});

test('nothing is left at the end, and what is of others is as it was', async () => {
  await disks.createEmpty(before);
  await assertClean(disks.pathOf(before, 0));
  await disks.remove({ uuid: before.uuid });
  assert.deepEqual(await list(), []);
  assert.match(await command('list', '-H', '-o', 'name', `${DATASET}/precious`), /precious/);
});
