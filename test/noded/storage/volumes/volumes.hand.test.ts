import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { hostTree } from '../../../lab/debian-releases.ts';
import { runInSystemMachine } from './run-in-machine.ts';

/**
 * LVM needs a device mapper, which a test host's kernel may lack. The disk layer runs in an
 * emulated machine with Debian's kernel, LVM, udev and QEMU.
 */
const PACKAGES = ['lvm2', 'thin-provisioning-tools', 'qemu-system-x86', 'qemu-utils'];
const MORE_PACKAGES = ['libatomic1', 'netbase'];

test('volumes of LVM are made, used, grown and removed, whenever a daemon is killed', async () => {
  const { status, output } = await runInSystemMachine('in-machine.ts', {
    tree: await hostTree('bookworm', [...PACKAGES, ...MORE_PACKAGES]),
    diskBytes: 40 * MIB,
    before: 'modprobe dm-mod && mkdir -p /var/tmp/volumes /var/tmp/vm',
  });
  process.stdout.write(`${output}\n`);
  assert.equal(status, 0, output);
});
