import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planApplianceMachine } from '../../../noded/install/appliance-machine.ts';
import { instanceRecord } from '../support/records.ts';

const file = { name: 'file', sha256: '0'.repeat(64), sizeBytes: 1 };
const APPLIANCE = {
  ...{ kernelPath: '/a/vmlinuz', initrdPath: '/a/initrd', rootPath: '/a/root' },
  manifest: { memoryMiB: 512, kernelArguments: 'quiet', kernel: file, initrd: file, root: file },
} as unknown as Parameters<typeof planApplianceMachine>[0]['appliance'];

test('an emulated appliance has one CPU, since a second one costs a core and saves no time', () => {
  const vcpusBy = (accelerator: 'kvm' | 'tcg'): number =>
    planApplianceMachine({
      ...{ instance: instanceRecord(), appliance: APPLIANCE, accelerator },
      ...{ nics: [], contentDisks: [], diskPath: null },
    }).vcpus;
  assert.deepEqual([vcpusBy('kvm'), vcpusBy('tcg')], [2, 1]);
});
