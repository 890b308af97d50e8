import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  KERNEL_STARTER,
  planApplianceMachine,
} from '../../../../noded/provision/appliance/appliance-machine.ts';
import { instanceRecord } from '../../support/records.ts';

const file = { name: 'file', sha256: '0'.repeat(64), sizeBytes: 1 };
const APPLIANCE = {
  ...{ kernelPath: '/a/vmlinuz', initrdPath: '/a/initrd', rootPath: '/a/root' },
  manifest: {
    ...{ memoryMiB: 512, kernel: file, initrd: file, root: file },
    ...{ kernelArguments: 'quiet', emulatedKernelArguments: 'lpj=1' },
  },
} as unknown as Parameters<typeof planApplianceMachine>[0]['appliance'];

const planFor = (accelerator: 'kvm' | 'tcg', idleProcessors: number, hasKernelStarter = true) =>
  planApplianceMachine({
    ...{ instance: instanceRecord(), appliance: APPLIANCE, accelerator, idleProcessors },
    hasKernelStarter,
    ...{ nics: [], contentDisks: [], diskPath: null },
  });

test('an emulated appliance has a second CPU only where two processors are idle', () => {
  const vcpus = (accelerator: 'kvm' | 'tcg', idleProcessors: number): number =>
    planFor(accelerator, idleProcessors).vcpus;
  assert.deepEqual(
    [vcpus('kvm', 0), vcpus('tcg', 2), vcpus('tcg', 1), vcpus('tcg', 0)],
    [2, 2, 1, 1],
  );
});

test('an emulated appliance is told what its kernel would have to find out', () => {
  assert.equal(planFor('tcg', 2).kernel?.append, 'quiet lpj=1');
  assert.equal(planFor('kvm', 2).kernel?.append, 'quiet');
});

test('an emulated appliance needs no BIOS where the host has what starts a kernel', () => {
  assert.equal(planFor('tcg', 2).kernelStarterPath, KERNEL_STARTER);
  assert.equal(planFor('tcg', 2, false).kernelStarterPath, undefined);
  assert.equal(planFor('kvm', 2).kernelStarterPath, undefined);
});
