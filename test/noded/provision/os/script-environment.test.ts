import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  planOspVariables,
  planScriptEnvironment,
  refuseSharedVariables,
  type ScriptEnvironmentInput,
} from '../../../../noded/provision/os/script-environment.ts';

const input: ScriptEnvironmentInput = {
  instance: {
    name: 'web1.example.com',
    uuid: '11111111-2222-4333-8444-555555555555',
    createdAtMs: 1_700_000_000_000,
    modifiedAtMs: 1_700_000_001_500,
    primaryNode: 'node1',
    osType: 'debootstrap+bookworm',
    hypervisor: 'kvm',
    beparams: { memory: 512, vcpus: 1, auto_balance: true },
    hvparams: { kernel_path: '', boot_order: 'disk' },
  },
  os: {
    name: 'debootstrap',
    apiVersion: 20,
    variants: ['default', 'bookworm'],
    variant: 'bookworm',
  },
  disks: [
    {
      path: '/dev/disk/by-id/virtio-disk0',
      sizeBytes: 1024 ** 3,
      uuid: 'aaaaaaaa-2222-4333-8444-555555555555',
      name: 'root',
      access: 'rw',
      backend: 'file:loop',
    },
    {
      path: '/dev/disk/by-id/virtio-disk1',
      sizeBytes: 5 * 1024 ** 2,
      uuid: 'bbbbbbbb-2222-4333-8444-555555555555',
      name: null,
      access: 'rw',
      backend: 'file:loop',
    },
  ],
  nics: [
    {
      mac: '52:54:00:00:00:01',
      uuid: 'cccccccc-2222-4333-8444-555555555555',
      name: null,
      ip: null,
      mode: 'bridged',
      link: 'br0',
    },
  ],
  debugLevel: 0,
  runsIn: 'host',
  operation: { script: 'create', reinstall: false },
};

test("a script is told exactly Ganeti's variables", () => {
  assert.deepEqual(planScriptEnvironment(input), {
    PATH: '/sbin:/bin:/usr/sbin:/usr/bin',
    OS_API_VERSION: '20',
    OS_NAME: 'debootstrap',
    OS_VARIANT: 'bookworm',
    DEBUG_LEVEL: '0',
    INSTANCE_NAME: 'web1.example.com',
    INSTANCE_OS: 'debootstrap+bookworm',
    INSTANCE_UUID: '11111111-2222-4333-8444-555555555555',
    INSTANCE_CTIME: '1700000000.0',
    INSTANCE_MTIME: '1700000001.5',
    INSTANCE_PRIMARY_NODE: 'node1',
    INSTANCE_SECONDARY_NODES: '',
    HYPERVISOR: 'kvm',
    DISK_COUNT: '2',
    DISK_0_PATH: '/dev/disk/by-id/virtio-disk0',
    DISK_0_ACCESS: 'rw',
    DISK_0_SIZE: '1024',
    DISK_0_UUID: 'aaaaaaaa-2222-4333-8444-555555555555',
    DISK_0_NAME: 'root',
    DISK_0_FRONTEND_TYPE: 'paravirtual',
    DISK_0_BACKEND_TYPE: 'file:loop',
    DISK_1_PATH: '/dev/disk/by-id/virtio-disk1',
    DISK_1_ACCESS: 'rw',
    DISK_1_SIZE: '5',
    DISK_1_UUID: 'bbbbbbbb-2222-4333-8444-555555555555',
    DISK_1_FRONTEND_TYPE: 'paravirtual',
    DISK_1_BACKEND_TYPE: 'file:loop',
    NIC_COUNT: '1',
    NIC_0_MAC: '52:54:00:00:00:01',
    NIC_0_UUID: 'cccccccc-2222-4333-8444-555555555555',
    NIC_0_MODE: 'bridged',
    NIC_0_BRIDGE: 'br0',
    NIC_0_LINK: 'br0',
    NIC_0_FRONTEND_TYPE: 'paravirtual',
    INSTANCE_BE_memory: '512',
    INSTANCE_BE_vcpus: '1',
    INSTANCE_BE_auto_balance: 'True',
    INSTANCE_HV_boot_order: 'disk',
  });
});

test('each operation adds its own variables', () => {
  const added = (
    operation: ScriptEnvironmentInput['operation'],
    runsIn: 'host' | 'appliance' = 'host',
  ): Record<string, string> => {
    const base = planScriptEnvironment(input);
    const all = planScriptEnvironment({ ...input, operation, runsIn });
    return Object.fromEntries(Object.entries(all).filter(([name]) => !(name in base)));
  };
  assert.deepEqual(added({ script: 'create', reinstall: true }), { INSTANCE_REINSTALL: '1' });
  assert.deepEqual(added({ script: 'rename', oldName: 'old' }), { OLD_INSTANCE_NAME: 'old' });
  assert.deepEqual(added({ script: 'export', diskIndex: 1 }), {
    EXPORT_INDEX: '1',
    EXPORT_DEVICE: '/dev/disk/by-id/virtio-disk1',
    EXPORT_DISK_PATH: '/dev/disk/by-id/virtio-disk1',
  });
  assert.deepEqual(added({ script: 'create', reinstall: false }, 'appliance'), {
    OS_SCRIPT: 'create_untrusted',
  });
});

test('the variant is the first listed when none is given, and empty before API 15', () => {
  const variantOf = (os: Partial<ScriptEnvironmentInput['os']>): string | undefined =>
    planScriptEnvironment({ ...input, os: { ...input.os, ...os } })['OS_VARIANT'];
  assert.equal(variantOf({ variant: null }), 'default');
  assert.equal(variantOf({ variant: null, variants: [] }), '');
  assert.equal(variantOf({ apiVersion: 10 }), '');
});

test('OSP names are upper case with underscores, values untouched', () => {
  assert.deepEqual(
    planOspVariables({ 'api-key': ' x\n$y ', 'a-b/c': '', Size_2: '', 'a.b': 'c' }),
    {
      OSP_API_KEY: ' x\n$y ',
      OSP_A_B_C: '',
      OSP_SIZE_2: '',
      'OSP_A.B': 'c',
    },
  );
});

test('two parameters that are one variable to a script are refused, wherever each comes from', () => {
  const of = (source: string): { readonly source: string } => ({ source });
  assert.throws(
    () => refuseSharedVariables(new Map([['a-b', of('profile web')], ['A/b', of('instance')]])), // prettier-ignore
    /'a-b' \(of profile web\) and 'A\/b' \(of instance\) become the same script variable, OSP_A_B/,
  );
  refuseSharedVariables(new Map([['a-b', of('os x')], ['a-c', of('os x')]])); // prettier-ignore
});
