import { z } from 'zod';
import { isAppError } from '#shared/errors/app-error.ts';
import type { OpenDisk } from './guest-files.ts';

/**
 * Plugs disks and NICs into a running guest. Each has its own root port, created at the start of
 * QEMU. Its QEMU id contains its UUID from the record, so that the present parts can be listed
 * after a crash of the daemon.
 */
export interface QmpSpeaker {
  execute(command: string, args?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** Passes a copy of a descriptor to QEMU. */
  executeWith(
    fd: number,
    command: string,
    args?: Readonly<Record<string, unknown>>,
  ): Promise<unknown>;
}

export interface PortedPart {
  readonly uuid: string;
  readonly port: number;
}

const PREFIX = 'part-';
const fdset = z.object({ 'fdset-id': z.number().int() });
const fdsets = z.array(
  fdset.extend({ fds: z.array(z.object({ opaque: z.string().optional() }).loose()) }),
);
const listed = z.array(z.object({ name: z.string() }).loose());

export const portName = (port: number): string => `port${port}`;
export const deviceId = (uuid: string): string => PREFIX + uuid;
export const netdevId = (uuid: string): string => `net-${uuid}`;
/** QEMU limits names of block nodes to 31 characters. */
const nodeName = (kind: 'd' | 'f', uuid: string): string =>
  kind + uuid.replaceAll('-', '').slice(0, 30);
/** Block node of the disk device. */
export const diskNode = (uuid: string): string => nodeName('d', uuid);
/** Block node of the file below it. */
export const fileNode = (uuid: string): string => nodeName('f', uuid);

/** @throws AppError QMP after removing partial results */
export async function plugDisk(
  qmp: QmpSpeaker,
  { uuid, port }: PortedPart,
  disk: Omit<OpenDisk, 'handle'> & { readonly fd: number; readonly serial: string },
): Promise<void> {
  // A daemon killed before the last step leaves these.
  await forgetDisk(qmp, uuid);
  const opaque = deviceId(uuid);
  const { 'fdset-id': set } = fdset.parse(await qmp.executeWith(disk.fd, 'add-fd', { opaque }));
  const node = { 'read-only': false, 'auto-read-only': false, discard: 'unmap' } as const;
  try {
    await qmp.execute('blockdev-add', {
      driver: disk.driver,
      'node-name': fileNode(uuid),
      filename: `/dev/fdset/${set}`,
      ...node,
      cache: { direct: disk.direct },
      aio: 'threads',
    });
    await qmp.execute('blockdev-add', {
      driver: 'raw',
      'node-name': diskNode(uuid),
      file: fileNode(uuid),
      ...node,
    });
    await qmp.execute('device_add', {
      driver: 'virtio-blk-pci',
      id: deviceId(uuid),
      bus: portName(port),
      drive: diskNode(uuid),
      serial: disk.serial,
      iothread: 'io0',
    });
  } catch (error) {
    await forgetDisk(qmp, uuid);
    throw error;
  }
}

/**
 * @param tap descriptor of a TAP; null for user mode
 * @throws AppError QMP after removing partial results
 */
export async function plugNic(
  qmp: QmpSpeaker,
  { uuid, port }: PortedPart,
  { tap, mac }: { readonly tap: number | null; readonly mac: string },
): Promise<void> {
  await forgetNic(qmp, uuid);
  const id = netdevId(uuid);
  if (tap !== null) await qmp.executeWith(tap, 'getfd', { fdname: id });
  try {
    await qmp.execute('netdev_add', { id, ...(tap === null ? { type: 'user' } : { type: 'tap', fd: id }) }); // prettier-ignore
    await qmp.execute('device_add', {
      driver: 'virtio-net-pci',
      id: deviceId(uuid),
      bus: portName(port),
      netdev: id,
      mac,
      romfile: '',
    });
  } catch (error) {
    await forgetNic(qmp, uuid);
    throw error;
  }
}

/** Removes the backend of a missing device, be it a disk or a NIC. */
export async function forgetPart(qmp: QmpSpeaker, uuid: string): Promise<void> {
  await forgetDisk(qmp, uuid);
  await forgetNic(qmp, uuid);
}

/** Returns the UUID of a plugged part; undefined for devices present from the start. */
export function partOf(device: string): string | undefined {
  return device.startsWith(PREFIX) ? device.slice(PREFIX.length) : undefined;
}

/** Lists the UUIDs of parts in ports. @throws AppError QMP */
export async function listPlugged(qmp: QmpSpeaker): Promise<ReadonlySet<string>> {
  const names = listed.parse(await qmp.execute('qom-list', { path: '/machine/peripheral' }));
  return new Set(names.flatMap(({ name }) => partOf(name) ?? []));
}

async function forgetDisk(qmp: QmpSpeaker, uuid: string): Promise<void> {
  for (const name of [diskNode(uuid), fileNode(uuid)])
    await unlessRefused(qmp.execute('blockdev-del', { 'node-name': name }));
  for (const { 'fdset-id': id, fds } of fdsets.parse(await qmp.execute('query-fdsets'))) {
    if (fds.some(({ opaque }) => opaque === deviceId(uuid)))
      await unlessRefused(qmp.execute('remove-fd', { 'fdset-id': id }));
  }
}

async function forgetNic(qmp: QmpSpeaker, uuid: string): Promise<void> {
  await unlessRefused(qmp.execute('netdev_del', { id: netdevId(uuid) }));
  await unlessRefused(qmp.execute('closefd', { fdname: netdevId(uuid) }));
}

/** QEMU refuses to remove missing objects. */
async function unlessRefused(command: Promise<unknown>): Promise<void> {
  try {
    await command;
  } catch (error) {
    if (!isAppError(error, 'QMP')) throw error;
  }
}
