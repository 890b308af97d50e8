import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MachineNic, MachineSpec } from '../../../noded/vmm/machine.ts';
import { planQemuArguments } from '../../../noded/vmm/qemu-arguments.ts';

const channel: MachineNic = {
  kind: 'tap',
  fd: 40,
  device: 'gnt.com.0',
  mac: 'aa:00:00:00:00:01',
  channel: true,
};
const bridged: MachineNic = {
  ...channel,
  device: 'gnt1',
  mac: 'aa:00:00:00:00:02',
  channel: false,
};
const user: MachineNic = { kind: 'user', mac: 'aa:00:00:00:00:03' };

function spec(changes: Partial<MachineSpec> = {}): MachineSpec {
  return {
    uuid: '00000000-0000-4000-8000-000000000001',
    name: 'web1.example.com',
    smbios: { uuid: '00000000-0000-4000-8000-000000000002' },
    memoryMiB: 512,
    vcpus: 2,
    accelerator: 'tcg',
    disks: [{ path: '/d/0', serial: 'disk-0', readOnly: false }],
    nics: [channel],
    noReboot: false,
    ...changes,
  };
}

function plan(machine: MachineSpec): readonly string[] {
  return planQemuArguments(machine, {
    qmp: 3,
    console: 4,
    consoleLog: 5,
    kernel: machine.kernel && 6,
    initrd: machine.kernel?.initrdPath === undefined ? undefined : 7,
    smbios: machine.smbiosStrings && 9,
    cdrom: machine.cdromPath === undefined ? undefined : 8,
    uefi: machine.uefi && { code: 20, variables: 21 },
    disks: machine.disks.map((_, index) => ({
      fd: 10 + index,
      direct: index === 0,
      driver: 'file' as const,
    })),
    taps: machine.nics.map((nic, index) => (nic.kind === 'tap' ? 100 + index : null)),
  });
}

function valuesOf(args: readonly string[], option: string): readonly string[] {
  return args.flatMap((arg, index) => (args[index - 1] === option ? [arg] : []));
}
function devices(machine: MachineSpec, kind: string): readonly string[] {
  return valuesOf(plan(machine), '-device').filter((value) => value.startsWith(kind));
}
function address(device: string | undefined): string | undefined {
  return /addr=([0-9a-f.]+)/.exec(device ?? '')?.[1];
}

test('QEMU gets every sandbox option, no default devices and only paths to descriptors and /dev/urandom', () => {
  const machine = spec({
    kernel: { kernelPath: '/secret/kernel', initrdPath: '/secret/initrd', append: 'quiet' },
    cdromPath: '/secret/cd.iso',
    nics: [user, bridged, channel],
    smbiosStrings: ['io.systemd.credential:system.hostname=web1'],
  });
  const args = plan(machine);
  assert.deepEqual(valuesOf(args, '-sandbox'), [
    'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
  ]);
  for (const flag of ['-nodefaults', '-no-user-config']) assert.ok(args.includes(flag), flag);
  assert.doesNotMatch(args.join(' '), /\/secret|\/d\/0|io\.systemd/);
  const paths = args.join(' ').match(/\/[^\s,]*/g);
  for (const path of paths ?? [])
    assert.match(path, /^\/(dev\/(fdset|urandom)|proc\/self\/fd\/[679]$)/);
});

test("a guest's NICs keep their PCI slots with more or fewer NICs, and the channel's NIC is last", () => {
  const alone = devices(spec({ nics: [channel] }), 'virtio-net-pci');
  const all = devices(spec({ nics: [user, bridged, channel] }), 'virtio-net-pci');
  const two = devices(spec({ nics: [user, channel] }), 'virtio-net-pci');
  assert.deepEqual(all.map(address), ['2.0', '3.0', 'f.0']);
  assert.deepEqual(two.map(address), ['2.0', 'f.0']);
  assert.deepEqual(alone.map(address), ['f.0']);
});

test("the channel's NIC is first with isChannelFirst, and the other NICs keep their slots", () => {
  const nics = [user, bridged, channel];
  const early = devices(spec({ nics, isChannelFirst: true }), 'virtio-net-pci');
  assert.deepEqual(early.map(address), ['2.0', '3.0', '1.0']);
  const every = devices(spec({ nics, isChannelFirst: true }), '').map(address);
  assert.equal(new Set(every).size, every.length);
});

test('eight disks share a slot, and no two devices share an address', () => {
  const disks = Array.from({ length: 18 }, (_, index) => ({
    path: `/d/${index}`,
    serial: `disk-${index}`,
    readOnly: false,
  }));
  const planned = devices(spec({ disks }), 'virtio-blk-pci');
  assert.deepEqual(
    [0, 7, 8, 17].map((index) => address(planned[index])),
    ['10.0', '10.7', '11.0', '12.1'],
  );
  assert.deepEqual(
    planned.map((device) => device.includes('multifunction=on')),
    planned.map((_, index) => index % 8 === 0),
  );
  const every = devices(spec({ disks, nics: [user, bridged, channel] }), '').map(address);
  assert.equal(new Set(every).size, every.length);
});

test('a disk is raw, and only a writable disk bypasses the page cache', () => {
  const args = plan(
    spec({
      disks: [
        { path: '/d/0', serial: 'disk-0', readOnly: false },
        { path: '/d/1', serial: 'image', readOnly: true },
      ],
    }),
  );
  const files = valuesOf(args, '-blockdev').filter((value) => value.startsWith('driver=file'));
  assert.match(files[0] ?? '', /\/dev\/fdset\/2,read-only=off,auto-read-only=off,cache\.direct=on/);
  assert.match(files[1] ?? '', /\/dev\/fdset\/3,read-only=on,auto-read-only=off,cache\.direct=off/);
  const formats = valuesOf(args, '-blockdev').map((value) => /driver=(\w+)/.exec(value)?.[1]);
  assert.deepEqual(new Set(formats), new Set(['file', 'raw']));
  assert.deepEqual(valuesOf(args, '-add-fd'), ['fd=5,set=1', 'fd=10,set=2', 'fd=11,set=3']);
});

test('each entry of the boot order names one device, and the channel boots only by its own entry', () => {
  const args = plan(
    spec({
      ...{ nics: [user, bridged, channel], cdromPath: '/cd' },
      bootOrder: ['cdrom', 'network', 'disk'],
    }),
  ).filter((arg) => arg.includes('bootindex='));
  assert.deepEqual(
    args.map((arg) => [/^[\w-]+/.exec(arg)?.[0], /bootindex=(\d)/.exec(arg)?.[1]]),
    [
      ['virtio-net-pci', '2'],
      ['virtio-blk-pci', '3'],
      ['ide-cd', '1'],
    ],
  );
  // Nor does a user-mode NIC, which has no PXE server.
  for (const nic of devices(spec({ nics: [user, channel], bootOrder: ['network'] }), 'virtio-net'))
    assert.match(nic, /,romfile=$/);
});

test("the channel's NIC boots with 'channel' in the boot order, and no other NIC has a ROM", () => {
  const machine = spec({ nics: [user, bridged, channel], bootOrder: ['channel', 'disk'] });
  const nics = devices(machine, 'virtio-net-pci');
  assert.deepEqual(
    nics.map((nic) => [address(nic), /,(romfile=|bootindex=\d)$/.exec(nic)?.[1]]),
    [
      ['2.0', 'romfile='],
      ['3.0', 'romfile='],
      ['f.0', 'bootindex=1'],
    ],
  );
  assert.match(devices(machine, 'virtio-blk-pci')[0] ?? '', /bootindex=2/);
  const early = devices({ ...machine, isChannelFirst: true }, 'virtio-net-pci');
  assert.match(early[2] ?? '', /addr=1\.0,bootindex=1$/);
});

test('UEFI code is in read-only flash, and UEFI variables are in writable flash', () => {
  const args = plan(spec({ uefi: { variablesPath: '/d/vars' } }));
  assert.deepEqual(valuesOf(args, '-machine'), [
    'q35,dump-guest-core=off,pflash0=uefi,pflash1=uefivars',
  ]);
  const [code, codeFormat, variables, variablesFormat] = valuesOf(args, '-blockdev');
  for (const value of [code, codeFormat]) assert.match(value ?? '', /node-name=uefi.*read-only=on/);
  for (const value of [variables, variablesFormat])
    assert.match(value ?? '', /node-name=uefivars.*read-only=off/);
  const sets = valuesOf(args, '-add-fd').map((value) => /set=(\d+)/.exec(value)?.[1]);
  assert.equal(new Set(sets).size, sets.length);
  assert.doesNotMatch(args.join(' '), /\/d\/vars/);
  assert.deepEqual(valuesOf(plan(spec()), '-machine'), ['q35,dump-guest-core=off']);
});

test('a kernel leaves no other boot device', () => {
  const args = plan(spec({ kernel: { kernelPath: '/k', append: 'a=1,b' }, bootOrder: ['disk'] }));
  assert.deepEqual(valuesOf(args, '-kernel'), ['/proc/self/fd/6']);
  assert.deepEqual(valuesOf(args, '-append'), ['a=1,b']);
  assert.doesNotMatch(args.join(' '), /bootindex|-initrd|-bios/);
  const direct = plan(spec({ kernel: { kernelPath: '/k' }, kernelStarterPath: '/rom' }));
  assert.deepEqual(valuesOf(direct, '-bios'), ['/rom']);
});

test('a comma in a name or in SMBIOS cannot start another option', () => {
  const args = plan(
    spec({
      name: 'a,debug-threads=on',
      smbios: {
        uuid: '00000000-0000-4000-8000-000000000002',
        serial: 'ds=nocloud-net;s=http://169.254.169.254/nocloud/,x=y',
        product: 'OpenStack Nova',
        chassisAssetTag: 'tag,1',
      },
    }),
  );
  assert.deepEqual(valuesOf(args, '-name'), ['guest=a,,debug-threads=on']);
  const [system = '', chassis = ''] = valuesOf(args, '-smbios');
  assert.match(system, /^type=1,uuid=00000000-0000-4000-8000-000000000002,/);
  assert.match(system, /,serial=ds=nocloud-net;s=http:\/\/169\.254\.169\.254\/nocloud\/,,x=y/);
  assert.match(system, /,product=OpenStack Nova/);
  assert.equal(chassis, 'type=3,asset=tag,,1');
});

test('KVM and TCG get their own processor models', () => {
  assert.deepEqual(valuesOf(plan(spec({ accelerator: 'kvm' })), '-cpu'), ['host']);
  assert.deepEqual(valuesOf(plan(spec()), '-cpu'), ['max,-erms,-tsc']);
  assert.match(valuesOf(plan(spec()), '-accel')[0] ?? '', /^tcg,thread=multi,tb-size=\d+$/);
});

test('more NICs or disks than slots are refused', () => {
  const nics = Array.from({ length: 14 }, () => ({ ...user }));
  assert.throws(() => plan(spec({ nics })), RangeError);
  const disk = { path: '/d', serial: 's', readOnly: true };
  assert.throws(() => plan(spec({ disks: Array.from({ length: 65 }, () => disk) })), RangeError);
});

test('devices with a port are named by their UUID, and devices in slots keep their slots', () => {
  const uuid = (last: number): string => `00000000-0000-4000-8000-00000000000${last}`;
  const plain = spec({ nics: [user, channel] });
  const ported = spec({
    hasPorts: true,
    nics: [{ ...bridged, part: { uuid: uuid(3), port: 0 } }, user, channel],
    disks: [
      ...plain.disks,
      { path: '/d/1', serial: 'disk-1', readOnly: false, part: { uuid: uuid(4), port: 7 } },
      { path: '/seed', serial: 'cidata', readOnly: true },
    ],
  });
  const slots = (machine: MachineSpec): unknown[] =>
    ['virtio-net', 'virtio-blk'].map((kind) => devices(machine, kind).map(address));
  assert.deepEqual(slots(plain), [['2.0', 'f.0'], ['10.0']]);
  assert.deepEqual(slots(ported), [
    [undefined, '2.0', 'f.0'],
    ['10.0', undefined, '10.1'],
  ]);
  assert.match(devices(ported, 'virtio-net')[0] ?? '', new RegExp(`id=part-${uuid(3)},bus=port0`));
  assert.match(devices(ported, 'virtio-blk')[1] ?? '', new RegExp(`id=part-${uuid(4)},bus=port7`));
  const ports = devices(ported, 'pcie-root-port').map(address);
  assert.deepEqual(
    ports,
    Array.from({ length: 8 }, (_, at) => `18.${at}`),
  );
  assert.deepEqual(devices(plain, 'pcie-root-port'), []);
  assert.equal(valuesOf(plan(ported), '-blockdev').some((one) => one.includes('node-name=disk1,')), true); // prettier-ignore
});

test('a watchdog has its own slot and its action, and is absent without the parameter', () => {
  for (const watchdog of ['reset', 'inject-nmi'] as const) {
    const watched = spec({
      nics: [user, bridged, channel],
      hasPorts: true,
      hvparams: { watchdog },
    });
    const own = devices(watched, 'i6300esb');
    assert.deepEqual(own, ['i6300esb,addr=1c.0'], watchdog);
    const others = valuesOf(plan(watched), '-device').filter((device) => device !== own[0]);
    assert.ok(!others.map(address).includes('1c.0'), watchdog);
    assert.deepEqual(valuesOf(plan(watched), '-action'), [`watchdog=${watchdog}`]);
  }
  for (const hvparams of [{}, { watchdog: 'no' as const }])
    assert.deepEqual(plan(spec({ hvparams })), plan(spec()));
});
