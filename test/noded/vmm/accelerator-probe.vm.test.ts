import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  probeKvm,
  PROBE_EXIT_SUCCESS,
  createProbeFirmware,
} from '../../../noded/vmm/accelerator-probe.ts';
import { machineUsers } from './tiny-guest.ts';

/** Tests with a device that every user may open, so that KVM itself decides. */
const PROBE_WITH_OPEN_DEVICE = `
mount -t tmpfs -o mode=755 gnt-test "$TMPDIR"
mknod -m 666 "$TMPDIR/kvm" c 10 232
mount --bind "$TMPDIR/kvm" /dev/kvm
exec "$0" --input-type=module --eval "$1"
`;

function ownChildren(): string {
  return readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8');
}

test('the probe firmware exits with success under TCG', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-test-probe-'));
  try {
    const firmware = join(directory, 'firmware');
    await writeFile(firmware, createProbeFirmware());
    const { status } = spawnSync(
      'qemu-system-x86_64',
      [
        ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
        ...['-machine', 'q35', '-accel', 'tcg', '-cpu', 'max', '-m', '16M'],
        ...['-bios', firmware, '-device', 'isa-debug-exit,iobase=0xf4,iosize=1'],
      ],
      { timeout: 60_000 },
    );
    assert.equal(status, PROBE_EXIT_SUCCESS);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('a host without the KVM device uses TCG and names the missing device', async () => {
  assert.deepEqual(await probeKvm(machineUsers, '/dev/gnt-no-kvm'), {
    accelerator: 'tcg',
    reason: '/dev/gnt-no-kvm does not exist',
  });
});

test('the probe ends within a minute with a reason, and leaves neither processes nor files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-test-probe-'));
  await chmod(directory, 0o755);
  const formerTmpdir = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  try {
    const before = ownChildren();
    const startedAtMs = performance.now();
    const choice = await probeKvm(machineUsers);
    // Its deadline is three seconds; a KVM that hangs hangs for ever.
    assert.ok(performance.now() - startedAtMs < 60_000);
    assert.match(choice.reason, choice.accelerator === 'kvm' ? /ran in KVM/ : /kvm|KVM/);
    assert.equal(ownChildren(), before);
    assert.deepEqual(await readdir(directory), []);
  } finally {
    if (formerTmpdir === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = formerTmpdir;
    await rm(directory, { recursive: true });
  }
});

test('a KVM device with mode 0666 is opened without a group', async () => {
  if (!existsSync('/dev/kvm')) return;
  const directory = await mkdtemp(join(tmpdir(), 'gnt-test-probe-'));
  await chmod(directory, 0o755);
  try {
    const from = join(import.meta.dirname, '../../../noded');
    const script = `
      import { findKvmGroup } from '${from}/host/machine-users.ts';
      import { probeKvm } from '${from}/vmm/accelerator-probe.ts';
      const choice = await probeKvm(${JSON.stringify(machineUsers)});
      console.log(JSON.stringify({ group: findKvmGroup(), ...choice }));
      process.exit(0);
    `;
    const words = ['--mount', '/bin/sh', '-ec', PROBE_WITH_OPEN_DEVICE, process.execPath, script];
    const env = { ...process.env, TMPDIR: directory };
    const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8', env });
    const result: unknown = JSON.parse(stdout || JSON.stringify(stderr));
    assert.ok(typeof result === 'object' && result !== null && 'group' in result, stderr);
    assert.equal(result.group, null);
    assert.doesNotMatch(JSON.stringify(result), /cannot be opened/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
