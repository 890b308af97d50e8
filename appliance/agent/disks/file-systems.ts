import { readdirSync } from 'node:fs';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';
import { type DiskLocations, linkDisks, listDisksBySerial, listPartitions } from './disks.ts';
import type { FileSystem } from './fstab.ts';

/** Tells the kernel to look at the partition tables again, and names what it finds. */
export async function rereadPartitions(plan: InstallPlan, at: DiskLocations): Promise<void> {
  const disks = listDisksBySerial(at);
  for (const { serial } of plan.disks) {
    const disk = disks.get(serial);
    if (!disk) continue;
    // partx copes with partitions that are in use; a disk without a table is no error.
    await tryCommand('partx', ['--update', disk.path]);
  }
  linkDisks(disks, at);
}

/** Volume groups on the instance's disks become devices; the appliance has none of its own. */
export async function activateVolumeGroups(): Promise<void> {
  await tryCommand('modprobe', ['-a', 'dm-mod', 'dm-snapshot', 'dm-thin-pool']);
  await tryCommand('vgchange', ['--activate', 'y', '--activationmode', 'degraded']);
  await tryCommand('vgmknodes', []);
}

/** @returns at once when there is no volume, since the program takes long to start */
export async function deactivateVolumeGroups(at: DiskLocations): Promise<void> {
  if (!readdirSync(at.sysBlock).some((name) => name.startsWith('dm-'))) return;
  await tryCommand('vgchange', ['--activate', 'n']);
}

/**
 * Everything on the instance's disks that blkid knows: on whole disks, on partitions and on logical
 * volumes. Types that are no file system (swap, LVM2_member, crypto_LUKS) are in the list: they
 * explain a failure.
 */
export async function listFileSystems(plan: InstallPlan, at: DiskLocations): Promise<FileSystem[]> {
  const found: FileSystem[] = [];
  const disks = listDisksBySerial(at);
  for (const [diskIndex, { serial }] of plan.disks.entries()) {
    const disk = disks.get(serial);
    if (!disk) continue;
    const partitions = listPartitions(disk.name, at);
    const whole = partitions.length === 0 ? [{ path: disk.path, partition: null }] : [];
    const parts = partitions.map((part) => ({
      path: `${at.dev}/${part.name}`,
      partition: part.number,
    }));
    for (const { path, partition } of [...whole, ...parts]) {
      const probed = await probe(path);
      if (probed) found.push({ ...probed, diskIndex, partition });
    }
  }
  if (!found.some((fileSystem) => fileSystem.type === 'LVM2_member')) return found;
  refuseTwins((await tryCommand('vgs', ['--noheadings', '-o', 'vg_name'])).stdout);
  await activateVolumeGroups();
  return [...found, ...(await listLogicalVolumes(at))];
}

/**
 * Device nodes of logical volumes are named after their group: of two groups of one name, nobody
 * can say which is meant.
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
  throw new AppError('IMAGE_INVALID', `two volume groups are named ${twin}`, {
    hint: 'rename one of them with vgrename, or leave its disk out',
  });
}

async function listLogicalVolumes(at: DiskLocations): Promise<FileSystem[]> {
  const found: FileSystem[] = [];
  const report = await tryCommand('lvs', [
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
    diskIndex: null,
    partition: null,
  };
}

/** `KEY=value` lines of `blkid -o export`; special characters have a backslash before them. */
export function parseBlkid(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const line of text.split('\n')) {
    const equals = line.indexOf('=');
    if (equals > 0) tags.set(line.slice(0, equals), line.slice(equals + 1).replace(/\\(.)/g, '$1'));
  }
  return tags;
}
