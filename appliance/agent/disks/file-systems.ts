import { readdirSync } from 'node:fs';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';
import { type DiskLocations, linkDisks, listDisksBySerial, listPartitions } from './disks.ts';
import type { FileSystem } from './fstab.ts';

/** An image may have a hundred partitions. */
const PROBES_AT_ONCE = 8;

export async function rereadPartitions(plan: InstallPlan, at: DiskLocations): Promise<void> {
  const disks = listDisksBySerial(at);
  for (const { serial } of plan.disks) {
    const disk = disks.get(serial);
    if (!disk) continue;
    // partx can update partitions in use. It fails harmlessly on a disk without a table.
    await tryCommand('partx', ['--update', disk.path]);
  }
  linkDisks(disks, at);
}

export function listInstanceDevices(plan: InstallPlan, at: DiskLocations): string[] {
  const disks = listDisksBySerial(at);
  return plan.disks.flatMap(({ serial }) => {
    const disk = disks.get(serial);
    if (!disk) return [];
    const parts = listPartitions(disk.name, at);
    return [disk.path, ...parts.map((part) => `${at.dev}/${part.name}`)];
  });
}

/**
 * Restricts LVM to these devices: the disk with a raw image holds the same volumes as the written
 * disk, and LVM opens neither of two copies.
 */
function only(devices: readonly string[]): readonly string[] {
  return ['--devices', devices.join(',')];
}

/** Activates volume groups on the instance's disks. The appliance has none of its own. */
async function activateVolumeGroups(devices: readonly string[]): Promise<void> {
  const how = ['--activate', 'y', '--activationmode', 'degraded'];
  await tryCommand('modprobe', ['-a', 'dm-mod', 'dm-snapshot', 'dm-thin-pool']);
  await tryCommand('vgchange', [...only(devices), ...how]);
  await tryCommand('vgmknodes', [...only(devices)]);
}

/**
 * Deactivates the groups on the instance's disks, then others that a script may have created.
 * @returns at once without a volume, since the program starts slowly
 */
export async function deactivateVolumeGroups(
  devices: readonly string[],
  at: DiskLocations,
): Promise<void> {
  for (const where of [only(devices), []]) {
    if (!readdirSync(at.sysBlock).some((name) => name.startsWith('dm-'))) return;
    await tryCommand('vgchange', [...where, '--activate', 'n']);
  }
}

/**
 * Lists everything on the instance's disks that blkid knows: on whole disks, partitions and logical
 * volumes. Includes types without a file system (swap, LVM2_member, crypto_LUKS), which explain a
 * failure.
 */
export async function listFileSystems(plan: InstallPlan, at: DiskLocations): Promise<FileSystem[]> {
  const disks = listDisksBySerial(at);
  const places = plan.disks.flatMap(({ serial }, diskIndex): Place[] => {
    const disk = disks.get(serial);
    if (!disk) return [];
    const partitions = listPartitions(disk.name, at);
    if (partitions.length === 0) return [{ path: disk.path, diskIndex, partition: null }];
    return partitions.map((part) => ({
      path: `${at.dev}/${part.name}`,
      diskIndex,
      partition: part.number,
    }));
  });
  const found = await probeAll(places);
  if (!found.some((fileSystem) => fileSystem.type === 'LVM2_member')) return found;
  const devices = listInstanceDevices(plan, at);
  const listed = await tryCommand('vgs', [...only(devices), '--noheadings', '-o', 'vg_name']);
  refuseTwins(listed.stdout);
  await activateVolumeGroups(devices);
  return [...found, ...(await listLogicalVolumes(devices, at))];
}

/**
 * Refuses two volume groups of one name, since device nodes contain the name only.
 * @param listed names as vgs prints them
 * @throws AppError IMAGE_INVALID naming the group
 */
function refuseTwins(listed: string): void {
  const names = listed
    .split('\n')
    .map((line) => line.trim())
    .filter((name) => name !== '');
  const twin = names.find((name, index) => names.indexOf(name) !== index);
  if (twin === undefined) return;
  throw new AppError('IMAGE_INVALID', `two volume groups have the name ${twin}`, {
    hint: 'Rename one of them with vgrename, or leave out its disk.',
  });
}

async function listLogicalVolumes(
  devices: readonly string[],
  at: DiskLocations,
): Promise<FileSystem[]> {
  const found: FileSystem[] = [];
  const report = await tryCommand('lvs', [
    ...only(devices),
    '--noheadings',
    '--separator',
    '|',
    '-o',
    'vg_name,lv_name',
  ]);
  const mapped = readdirSync(`${at.dev}/mapper`);
  for (const line of report.stdout.split('\n')) {
    const [group, volume] = line.trim().split('|');
    if (!group || !volume) continue;
    const name = `${group.replaceAll('-', '--')}-${volume.replaceAll('-', '--')}`;
    if (!mapped.includes(name)) continue;
    const path = `${at.dev}/mapper/${name}`;
    const probed = await probe(path);
    if (probed) found.push({ ...probed, aliases: [path, `/dev/${group}/${volume}`] });
  }
  return found;
}

type Place = Pick<FileSystem, 'path' | 'diskIndex' | 'partition'>;

/** Probes devices in order, some in parallel: starting blkid takes most of the time. */
async function probeAll(places: readonly Place[]): Promise<FileSystem[]> {
  const found: FileSystem[] = [];
  for (let at = 0; at < places.length; at += PROBES_AT_ONCE) {
    const some = places.slice(at, at + PROBES_AT_ONCE);
    const probed = await Promise.all(
      some.map(async (place) => {
        const fileSystem = await probe(place.path);
        return fileSystem === null ? [] : [{ ...fileSystem, ...place }];
      }),
    );
    found.push(...probed.flat());
  }
  return found;
}

async function probe(path: string): Promise<FileSystem | null> {
  const result = await tryCommand('blkid', ['-p', '-o', 'export', path]);
  if (result.status !== 0) return null;
  const tags = parseBlkid(result.stdout);
  const type = tags.get('TYPE');
  if (type === undefined) return null;
  return {
    path,
    aliases: [path],
    type,
    uuid: tags.get('UUID') ?? null,
    label: tags.get('LABEL') ?? null,
    partUuid: tags.get('PART_ENTRY_UUID') ?? null,
    partLabel: tags.get('PART_ENTRY_NAME') ?? null,
    partType: tags.get('PART_ENTRY_TYPE') ?? null,
    diskIndex: null,
    partition: null,
  };
}

/** Parses `KEY=value` lines of `blkid -o export`, where a backslash precedes special characters. */
export function parseBlkid(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const line of text.split('\n')) {
    const equals = line.indexOf('=');
    if (equals > 0) tags.set(line.slice(0, equals), line.slice(equals + 1).replace(/\\(.)/g, '$1'));
  }
  return tags;
}
