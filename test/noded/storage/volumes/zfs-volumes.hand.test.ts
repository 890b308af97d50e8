import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { zfsHostTree } from '../../../lab/debian-releases.ts';
import { runInSystemMachine } from './run-in-machine.ts';

/** A test host's kernel has no ZFS module. */
const PACKAGES = ['libatomic1', 'lvm2', 'netbase', 'qemu-system-x86', 'qemu-utils'];

test('volumes of ZFS are made, kept in snapshots and removed, whenever a daemon ends', async () => {
  const { status, output } = await runInSystemMachine('zfs-in-machine.ts', {
    tree: await zfsHostTree(PACKAGES),
    diskBytes: 384 * MIB,
    before: 'modprobe zfs && mkdir -p /var/tmp/vm',
  });
  process.stdout.write(`${output}\n`);
  assert.equal(status, 0, output);
});
