import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { instanceFields } from '../../../cluster-cli/fields/instance-fields.ts';
import { findField } from '../../../cluster-cli/render/select.ts';
import { describeFields } from '../support/describe-fields.ts';
import { sampleInstance } from '../support/samples.ts';

const disk = sampleInstance().disks[0] ?? assert.fail();
const nic = {
  ...{ uuid: disk.uuid, name: null, mac: 'aa:00:00:00:00:01', mode: 'bridged', ip: '10.9.0.5' },
  ...{ link: 'br0', networkName: 'lan', network: null },
} as unknown as InstanceInfo['nics'][number];

test('instances have these columns', () => {
  const instance = sampleInstance({ nics: [nic], hvparams: { kernel_path: '/boot/vmlinuz' } });
  assert.deepEqual(describeFields(instanceFields, instance), [
    '* name Instance text "web1.example.com"',
    '* hypervisor Hypervisor text "kvm"',
    '* os OS text "debian+bookworm"',
    '* pnode Primary_node text "node1"',
    '* status Status text "running"',
    '* oper_ram Memory size 1024',
    '  oper_vcpus VCPUs number 2',
    '  oper_state Running boolean true',
    '  admin_state InstanceState text "up"',
    '  install_state Install text "installed"',
    '  paused Paused text null',
    '  lost_secrets Lost_secrets list null',
    '  accelerator Accel text "tcg"',
    '  pid PID number 4242',
    '  be/memory ConfigMemory size 1024',
    '  be/maxmem ConfigMaxMem size 1024',
    '  be/minmem ConfigMinMem size 1024',
    '  be/vcpus ConfigVCPUs number 2',
    '  disk_template Disk_template text "file"',
    '  communication Channel boolean true',
    '  channel.tap Channel_TAP text "gnt.com.0"',
    '  tags Tags list ["db","prod"]',
    '  uuid InstanceUUID text "5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f"',
    '  serial_no SerialNo number 3',
    '  ctime CTime time 1795248000000',
    '  mtime MTime time 1795248000000',
    '  install_error Install_error text null',
    '  ready Ready boolean true',
    '  boot Boot text null',
    '  boot_stage Boot_stage text null',
    '  lifecycle Lifecycle text null',
    '  lifecycle_reason Lifecycle_reason text null',
    '  hv/accel hv/accel text "auto"',
    '  hv/boot_order hv/boot_order text null',
    '  hv/cdrom_image_path hv/cdrom_image_path text null',
    '  hv/firmware hv/firmware text "bios"',
    '  hv/watchdog hv/watchdog text "no"',
    '  hv/kernel_path hv/kernel_path text "/boot/vmlinuz"',
    '  hv/initrd_path hv/initrd_path text null',
    '  hv/kernel_args hv/kernel_args text null',
    '  disk.count Disks number 1',
    '  disk.sizes Disk_sizes size [10240]',
    '  disk.names Disk_names list ["root"]',
    '  disk.uuids Disk_UUIDs list ["aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"]',
    '  disk_usage DiskUsage size 10240',
    '  nic.count NICs number 1',
    '  nic.macs NIC_MACs list ["aa:00:00:00:00:01"]',
    '  nic.ips NIC_IPs list ["10.9.0.5"]',
    '  nic.modes NIC_modes list ["bridged"]',
    '  nic.networks.names NIC_networks_names list ["lan"]',
    '  nic.links NIC_links list ["br0"]',
    '  nic.names NIC_Names list ["-"]',
    '  channel.ip Channel_IP text "169.254.1.2"',
    '  channel.mac Channel_MAC text "52:54:00:11:22:33"',
    '  dialects Dialects list ["ganeti","ec2","openstack","nocloud"]',
    '  metadata_token Token text "optional"',
    '  datasource Datasource text "NoCloud"',
    '  os_image OS_image text null',
    '  profiles Profiles list []',
    '  secrets Secrets list ["password"]',
    '  instance_id InstanceID text "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"',
  ]);
});

/** Returns the columns without a value for a row. */
const emptyFor = (row: Parameters<(typeof instanceFields.fields)[number]['get']>[0]) =>
  instanceFields.fields.filter(({ get }) => get(row) === null).map(({ name }) => name);

test('columns of the QEMU process have no value for a stopped instance', () => {
  const [running, stopped] = [
    emptyFor(sampleInstance()),
    emptyFor(sampleInstance({ running: null, status: 'ADMIN_down' })),
  ];
  assert.deepEqual(
    stopped.filter((name) => !running.includes(name)),
    ['oper_ram', 'oper_vcpus', 'accelerator', 'pid', 'channel.tap', 'ready'],
  );
});

test('an orphan has values of its process only', () => {
  const { uuid } = disk;
  const orphan = { uuid, name: 'lost', pid: 7, tap: null, node: 'node1', status: 'ERROR_orphan' };
  const row = orphan as Parameters<typeof emptyFor>[0];
  const values = instanceFields.fields.flatMap(({ name, get }) =>
    get(row) === null ? [] : [`${name}=${String(get(row))}`],
  );
  assert.deepEqual(values, [
    ...['name=lost', 'hypervisor=kvm', 'pnode=node1', 'status=ERROR_orphan', 'oper_state=true'],
    ...['pid=7', `uuid=${uuid}`],
  ]);
});

const booted = (status: string, errors: readonly string[] = []) =>
  ({ boot: { status, stage: 'final', errors } }) as unknown as Partial<InstanceInfo>;

for (const [what, fields, state, reason] of [
  ['a guest that reported nothing', {}, null, null],
  ['a guest whose cloud-init works', booted('running'), 'booting', null],
  ['a guest whose cloud-init is done', booted('done'), 'operational', null],
  ['a guest whose cloud-init failed', booted('error', ['no route']), 'stranded', 'no route'],
  [
    'a guest with run lists',
    { lifecycle: { state: 'stranded', kind: 'failed', reason: 'exit 3' }, ...booted('done') },
    ...(['stranded', 'exit 3'] as const),
  ],
  [
    'run lists without a reason',
    { lifecycle: { state: 'decommissioned', kind: 'terminate', reason: null } },
    ...(['decommissioned', 'terminate'] as const),
  ],
] as const) {
  test(`${what} is ${state ?? 'in no state'} in the list`, () => {
    const instance = sampleInstance(fields as Partial<InstanceInfo>);
    const valueOf = (name: string) => findField(instanceFields, name).get(instance);
    assert.deepEqual([valueOf('lifecycle'), valueOf('lifecycle_reason')], [state, reason]);
  });
}

test('a column of one disk or NIC has the value of that one', () => {
  const [first, second] = [nic, { ...nic, mac: 'aa:00:00:00:00:02', ip: null, link: 'br1' }];
  const instance = sampleInstance({
    nics: [first, second],
    disks: [disk, { ...disk, name: null, sizeBytes: 3 * 2 ** 20 }],
  });
  const valueOf = (name: string) => findField(instanceFields, name).get(instance);
  assert.deepEqual(
    ['disk.size/1', 'nic.mac/1', 'nic.ip/1', 'nic.link/1', 'nic.mac/2'].map(valueOf),
    [3, 'aa:00:00:00:00:02', null, 'br1', null],
  );
  assert.deepEqual(valueOf('disk_usage'), 10 * 1024 + 3);
  assert.deepEqual(valueOf('disk.names'), ['root', '-']);
});
