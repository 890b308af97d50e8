import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planApplianceMachine } from '../../../noded/install/appliance-machine.ts';
import { instanceRecord } from '../support/records.ts';

const file = { name: 'file', sha256: '0'.repeat(64), sizeBytes: 1 };
const APPLIANCE = {
  ...{ kernelPath: '/a/vmlinuz', initrdPath: '/a/initrd', rootPath: '/a/root' },
  manifest: { memoryMiB: 512, kernelArguments: 'quiet', kernel: file, initrd: file, root: file },
} as unknown as Parameters<typeof planApplianceMachine>[0]['appliance'];

test('an emulated appliance has a second CPU only where two processors are idle', () => {
  const vcpus = (accelerator: 'kvm' | 'tcg', idleProcessors: number): number =>
    planApplianceMachine({
      ...{ instance: instanceRecord(), appliance: APPLIANCE, accelerator, idleProcessors },
      ...{ nics: [], contentDisks: [], diskPath: null },
    }).vcpus;
  assert.deepEqual(
    [vcpus('kvm', 0), vcpus('tcg', 2), vcpus('tcg', 1), vcpus('tcg', 0)],
    [2, 2, 1, 1],
  );
});
