import { MAX_PORTS } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import { type PortedPart, deviceId, diskNode, fileNode, netdevId, portName } from './hot-plug.ts';
import type { OpenDisk } from './guest-files.ts';
import type { BootDevice, MachineNic, MachineSmbios, MachineSpec } from './machine.ts';

/** Descriptors that QEMU inherits, by their numbers in QEMU. */
export interface QemuDescriptors {
  /** Listening unix sockets. */
  readonly qmp: number;
  readonly console: number;
  /** Opened for appending; receives the output of the guest's console. */
  readonly consoleLog: number;
  readonly kernel?: number | undefined;
  readonly initrd?: number | undefined;
  /** SMBIOS structures that QEMU adds to its own. */
  readonly smbios?: number | undefined;
  readonly disks: readonly ({ readonly fd: number } & Omit<OpenDisk, 'handle'>)[];
  readonly cdrom?: number | undefined;
  readonly uefi?: { readonly code: number; readonly variables: number } | undefined;
  /** Same order as `spec.nics`: the TAP's descriptor, or null for a user NIC. */
  readonly taps: readonly (number | null)[];
}

/**
 * TCG's cache of translated code, MiB. The default of 1 GiB becomes resident in time. With 128 a
 * Debian guest with 512 MiB of memory boots as fast and needs half of the memory.
 */
const TCG_CACHE_MIB = 128;
/**
 * All features of TCG except two. erms: kernels and C libraries would clear and copy memory with
 * `rep movsb`, which TCG executes byte by byte; without it Node starts a fifth faster in a guest.
 * tsc: it is the host's counter, whose frequency Linux measures against the PIT. An interruption of
 * the emulation during that, as in one boot of ten on a busy host, made the guest's clock 6 to 60
 * times too fast. Without tsc a guest uses the HPET.
 */
const TCG_CPU = 'max,-erms,-tsc';
/**
 * PCI slots do not depend on the number of devices, so that interface names in the guest are
 * stable.
 */
const EARLY_CHANNEL_SLOT = 0x01;
const FIRST_NIC_SLOT = 0x02;
const CHANNEL_NIC_SLOT = 0x0f;
const FIRST_DISK_SLOT = 0x10;
const FUNCTIONS_PER_SLOT = 8;
const MAX_DISKS = 8 * FUNCTIONS_PER_SLOT;
/** Numbers of descriptor sets: 1 is the console's log, the disks follow. */
const CDROM_SET = 2 + MAX_DISKS;
const UEFI_SETS = { code: CDROM_SET + 1, variables: CDROM_SET + 2 };
/** This slot has a root port for each of its functions. */
const PORT_SLOT = 0x18;
const WATCHDOG_SLOT = 0x1c;
const RNG_SLOT = 0x1d;
const PANIC_SLOT = 0x1e;

/**
 * Plans QEMU's command line: no default devices, no display, and descriptors in place of all paths.
 * @throws RangeError when there are more devices than slots
 */
export function planQemuArguments(spec: MachineSpec, fds: QemuDescriptors): readonly string[] {
  const boot = planBootIndexes(spec);
  return [
    ...['-name', `guest=${quote(spec.name)}`],
    ...['-uuid', spec.smbios.uuid],
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...planBoard(fds.uefi),
    ...planAccelerator(spec),
    ...['-smp', String(spec.vcpus), '-m', `${spec.memoryMiB}M`],
    ...['-rtc', 'base=utc', '-boot', 'strict=on'],
    ...planSmbios(spec.smbios),
    ...(fds.smbios === undefined ? [] : ['-smbios', `file=/proc/self/fd/${fds.smbios}`]),
    ...['-chardev', `socket,id=qmp,fd=${fds.qmp},server=on,wait=off`],
    ...['-mon', 'chardev=qmp,mode=control'],
    ...addFd(1, fds.consoleLog),
    ...[
      '-chardev',
      `socket,id=console,fd=${fds.console},server=on,wait=off,logfile=/dev/fdset/1,logappend=on`,
    ],
    ...['-serial', 'chardev:console'],
    ...['-object', 'rng-random,id=rng0,filename=/dev/urandom'],
    ...['-device', `virtio-rng-pci,rng=rng0,addr=${pciAddress(RNG_SLOT)}`],
    ...['-device', `pvpanic-pci,addr=${pciAddress(PANIC_SLOT)}`],
    ...planWatchdog(spec.hvparams?.watchdog),
    ...(spec.hasPorts === true ? planPorts() : []),
    ...spec.nics.flatMap((nic, index) => planNic(spec, nic, index, fds.taps[index], boot)),
    ...['-object', 'iothread,id=io0'],
    ...spec.disks.flatMap((_, index) => planDisk(spec, index, fds, boot)),
    ...(fds.cdrom === undefined ? [] : planCdrom(fds.cdrom, boot)),
    ...planKernel(spec, fds),
    ...(spec.noReboot ? ['-no-reboot'] : []),
    ...(spec.isExpected === true ? ['-S', '-incoming', 'defer'] : []),
  ];
}

/** The device is idle until a program of the guest opens it, such as systemd. */
function planWatchdog(action: HvParameters['watchdog'] = 'no'): readonly string[] {
  if (action === 'no') return [];
  return [
    ...['-device', `i6300esb,addr=${pciAddress(WATCHDOG_SLOT)}`],
    ...['-action', `watchdog=${action}`],
  ];
}

/** io-reserve=0: an unused port must not take I/O port space, which is scarce. */
function planPorts(): readonly string[] {
  return Array.from({ length: MAX_PORTS }, (_, port) => [
    '-device',
    `pcie-root-port,id=${portName(port)},chassis=${port + 1},slot=${port + 1},addr=${pciAddress(PORT_SLOT, port)},io-reserve=0${port === 0 ? ',multifunction=on' : ''}`,
  ]).flat();
}

/** Adds flash for the firmware's code and flash for its variables. */
function planBoard(uefi: QemuDescriptors['uefi']): readonly string[] {
  const board = 'q35,dump-guest-core=off';
  if (uefi === undefined) return ['-machine', board];
  const flash = (name: string, set: number, fd: number, readOnly: boolean): readonly string[] => [
    ...addFd(set, fd),
    '-blockdev',
    `driver=file,node-name=${name}file,filename=/dev/fdset/${set},${access(readOnly)}`,
    '-blockdev',
    `driver=raw,node-name=${name},file=${name}file,${access(readOnly)}`,
  ];
  return [
    ...flash('uefi', UEFI_SETS.code, uefi.code, true),
    ...flash('uefivars', UEFI_SETS.variables, uefi.variables, false),
    ...['-machine', `${board},pflash0=uefi,pflash1=uefivars`],
  ];
}

type BootIndexes = ReadonlyMap<BootDevice, number>;

function planBootIndexes(spec: MachineSpec): BootIndexes {
  if (spec.kernel) return new Map();
  return new Map((spec.bootOrder ?? ['disk']).map((device, index) => [device, index + 1]));
}

function bootIndex(boot: BootIndexes, device: BootDevice): string {
  const index = boot.get(device);
  return index === undefined ? '' : `,bootindex=${index}`;
}

function planAccelerator(spec: MachineSpec): readonly string[] {
  return spec.accelerator === 'kvm'
    ? ['-accel', 'kvm', '-cpu', 'host']
    : ['-accel', `tcg,thread=multi,tb-size=${TCG_CACHE_MIB}`, '-cpu', TCG_CPU];
}

function planSmbios(smbios: MachineSmbios): readonly string[] {
  const { uuid, chassisAssetTag, ...texts } = smbios;
  const fields = Object.entries({ uuid, ...texts })
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .map(([key, value]) => `,${key}=${quote(value)}`);
  const system = ['-smbios', `type=1${fields.join('')}`];
  if (chassisAssetTag === undefined) return system;
  return [...system, '-smbios', `type=3,asset=${quote(chassisAssetTag)}`];
}

function planNic(
  spec: MachineSpec,
  nic: MachineNic,
  index: number,
  tap: number | null | undefined,
  boot: BootIndexes,
): readonly string[] {
  const isChannel = nic.kind === 'tap' && nic.channel;
  const part = spec.hasPorts === true ? nic.part : undefined;
  const ordinary = spec.nics.filter(
    (other) =>
      !(other.kind === 'tap' && other.channel) &&
      (spec.hasPorts !== true || other.part === undefined),
  );
  const channelSlot = spec.isChannelFirst === true ? EARLY_CHANNEL_SLOT : CHANNEL_NIC_SLOT;
  const slot = isChannel ? channelSlot : FIRST_NIC_SLOT + ordinary.indexOf(nic);
  if (!isChannel && part === undefined && slot >= CHANNEL_NIC_SLOT)
    throw new RangeError('too many NICs');
  // A user-mode NIC has no PXE server.
  const isNetwork = nic === ordinary.find(({ kind }) => kind === 'tap');
  const device = isChannel ? 'channel' : isNetwork ? 'network' : null;
  const boots = device !== null && boot.has(device);
  const netdev = tap === null || tap === undefined ? 'user' : `tap,fd=${tap}`;
  const id = part === undefined ? `net${index}` : netdevId(part.uuid);
  const place = part === undefined ? `addr=${pciAddress(slot)}` : placeOf(part);
  return [
    '-netdev',
    `${netdev},id=${id}`,
    '-device',
    // `romfile=` means no boot ROM, so that the firmware ignores the NIC.
    `virtio-net-pci,netdev=${id},mac=${nic.mac},${place}${boots ? bootIndex(boot, device) : ',romfile='}`,
  ];
}

function planDisk(
  spec: MachineSpec,
  index: number,
  fds: QemuDescriptors,
  boot: BootIndexes,
): readonly string[] {
  const disk = spec.disks[index];
  const descriptor = fds.disks[index];
  if (!disk || !descriptor) throw new Error(`disk ${index} has no descriptor`);
  if (index >= MAX_DISKS) throw new RangeError('too many disks');
  const set = 2 + index;
  const { part } = disk;
  // Disks in ports have no number.
  const number = spec.disks.slice(0, index).filter((other) => other.part === undefined).length;
  const [node, file] = part
    ? [diskNode(part.uuid), fileNode(part.uuid)]
    : [`disk${number}`, `file${number}`];
  const functionNumber = number % FUNCTIONS_PER_SLOT;
  const address = pciAddress(
    FIRST_DISK_SLOT + Math.floor(number / FUNCTIONS_PER_SLOT),
    functionNumber,
  );
  const multifunction = functionNumber === 0 ? ',multifunction=on' : '';
  // By default QEMU pauses a guest whose write finds the host's disk full. An appliance must see
  // the error.
  const onFull = disk.reportsFullHost === true ? ',werror=report,rerror=report' : '';
  const place = part ? placeOf(part) : `addr=${address}${multifunction}`;
  const isBoot = index === 0 ? bootIndex(boot, 'disk') : '';
  return [
    ...addFd(set, descriptor.fd, part && deviceId(part.uuid)),
    '-blockdev',
    `driver=${descriptor.driver},node-name=${file},filename=/dev/fdset/${set},${access(disk.readOnly)},cache.direct=${descriptor.direct ? 'on' : 'off'},aio=threads,discard=unmap`,
    '-blockdev',
    `driver=raw,node-name=${node},file=${file},${access(disk.readOnly)},discard=unmap,detect-zeroes=off`,
    '-device',
    `virtio-blk-pci,drive=${node},serial=${quote(disk.serial)},iothread=io0,${place}${isBoot}${onFull}`,
  ];
}

function planCdrom(fd: number, boot: BootIndexes): readonly string[] {
  return [
    ...addFd(CDROM_SET, fd),
    '-blockdev',
    `driver=file,node-name=cdfile,filename=/dev/fdset/${CDROM_SET},${access(true)}`,
    '-blockdev',
    `driver=raw,node-name=cd,file=cdfile,${access(true)}`,
    '-device',
    `ide-cd,drive=cd,bus=ide.0${bootIndex(boot, 'cdrom')}`,
  ];
}

/** Passes the files by descriptor, because QEMU's user has no access to their folders. */
function planKernel(spec: MachineSpec, fds: QemuDescriptors): readonly string[] {
  if (!spec.kernel || fds.kernel === undefined) return [];
  const { append } = spec.kernel;
  return [
    ...(spec.kernelStarterPath === undefined ? [] : ['-bios', spec.kernelStarterPath]),
    ...['-kernel', `/proc/self/fd/${fds.kernel}`],
    ...(fds.initrd === undefined ? [] : ['-initrd', `/proc/self/fd/${fds.initrd}`]),
    ...(append === undefined ? [] : ['-append', append]),
  ];
}

function placeOf({ uuid, port }: PortedPart): string {
  return `id=${deviceId(uuid)},bus=${portName(port)}`;
}

function addFd(set: number, fd: number, opaque?: string): readonly string[] {
  return ['-add-fd', `fd=${fd},set=${set}${opaque === undefined ? '' : `,opaque=${opaque}`}`];
}

function access(readOnly: boolean): string {
  return `read-only=${readOnly ? 'on' : 'off'},auto-read-only=off`;
}

/** QEMU's format: hexadecimal slot and function. */
function pciAddress(slot: number, functionNumber = 0): string {
  return `${slot.toString(16)}.${functionNumber}`;
}

/** A comma separates options unless it is doubled. */
function quote(value: string): string {
  return value.replaceAll(',', ',,');
}
