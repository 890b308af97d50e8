import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordWithoutFile } from '../../../noded/vmm/hypervisor.ts';

test('a QEMU process without a description counts as public-only', () => {
  const words = ['qemu-system-x86_64', '-accel', 'kvm', '-netdev', 'user,id=net0'];
  const { userNic, isPublicOnly } = recordWithoutFile('uuid', words);
  assert.deepEqual({ userNic, isPublicOnly }, { userNic: true, isPublicOnly: true });
});
