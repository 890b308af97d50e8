import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MachineNature } from '#shared/contract/migration.ts';
import { differenceOf, misfitOf } from '../../../noded/vmm/machine-nature.ts';

const TCG: MachineNature = {
  ...{ qemu: '7.2', board: 'pc-q35-7.2-machine', accelerator: 'tcg', processor: null },
};
const KVM: MachineNature = {
  ...{ ...TCG, accelerator: 'kvm' },
  processor: { model: 'Some CPU', flags: 'fpu sse avx' },
};

test('a migration needs the same accelerator, QEMU version and machine type, and all processor flags', () => {
  assert.equal(misfitOf(TCG, TCG), undefined);
  assert.equal(misfitOf(KVM, KVM), undefined);
  assert.match(misfitOf(KVM, TCG) ?? '', /runs with kvm, .* only has tcg/);
  assert.match(misfitOf(TCG, { ...TCG, qemu: '8.0' }) ?? '', /QEMU version is 7\.2, .* 8\.0/);
  assert.match(misfitOf(TCG, { ...TCG, board: 'other' }) ?? '', /machine type is pc-q35/);
  const older = { ...KVM, processor: { model: 'Some CPU', flags: 'fpu sse' } };
  assert.match(misfitOf(KVM, older) ?? '', /lacks: avx/);
  const other = { ...KVM, processor: { model: 'Other', flags: 'fpu sse avx' } };
  assert.match(misfitOf(KVM, other) ?? '', /processor is Some CPU, .* Other/);
});

test('two command lines match without regard to descriptors, names and incoming options', () => {
  const here = ['/usr/bin/qemu', '-name', 'guest=a', '-netdev', 'tap,fd=9,id=net0', '-m', '64M'];
  const there = ['qemu', '-name', 'guest=b', '-netdev', 'tap,fd=12,id=net0', '-m', '64M'];
  const waiting = [...there, '-S', '-incoming', 'defer'];
  assert.equal(differenceOf(waiting, here), undefined);
  assert.equal(differenceOf([...there.slice(0, -1), '128M'], here), "'64M' there, '128M' here");
  assert.equal(differenceOf([...there, '-no-reboot'], here), "'' there, '-no-reboot' here");
});
