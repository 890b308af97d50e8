import type { InstallPlan } from '#shared/contract/plan.ts';
import { mkdirSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { commandFailure, runCommand, tryCommand } from '../process/command.ts';
import { parseBlkid, rereadPartitions } from './file-systems.ts';
import { type DiskLocations, listDisksBySerial, listPartitions, type Partition } from './disks.ts';
import type { Stage } from '../report/stage.ts';

const GROW_MOUNT = '/run/gnt/grow';
/** A smaller gain is not worth a write to the partition table. */
const MIN_GAIN_BYTES = 4 * MIB;
const FIRST_LOGICAL_PARTITION = 5;
const GROWABLE = ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs'];
/** Partition types of recovery systems: Windows (GPT), hidden NTFS and diagnostics (MBR). */
const RECOVERY_TYPES = ['de94bba4-06d1-4d40-a16a-bfd50179d6ac', '0x27', '0x12'];
/** The kernel's minimum size for resizing btrfs. */
const MIN_BTRFS_BYTES = 256 * MIB;

/**
 * Grows the last partition of the first disk, and its file system, to the size of the disk. A
 * partition with other content stays as it is: the space behind it would be lost to the file
 * systems before it.
 */
export function createGrowStage(plan: InstallPlan, at: DiskLocations): Stage {
  return {
    name: 'grow',
    async run() {
      const first = plan.disks[0];
      const disk = first && listDisksBySerial(at).get(first.serial);
      if (!disk) throw new AppError('DISK_MISSING', 'the instance has no first disk');
      await rereadPartitions(plan, at);
      const last = lastPartition(listPartitions(disk.name, at));
      if (!last) return `${await growFileSystem(disk.path, disk.sizeBytes)} on the whole disk`;
      const table = (await probe(disk.path)).get('PTTYPE');
      if (table !== 'gpt' && last.number >= FIRST_LOGICAL_PARTITION)
        return `not grown: the last partition (${last.number}) is a logical partition`;
      // The backup header of a GPT belongs at the end of the disk, even when nothing grows.
      if (table === 'gpt') await runCommand('sfdisk', ['--relocate', 'gpt-bak-std', disk.path]);
      const path = `${at.dev}/${last.name}`;
      const kept = keptContent(await probe(path));
      if (kept !== null) return `not grown: the last partition (${last.number}) holds ${kept}`;
      if (disk.sizeBytes - last.startBytes - last.sizeBytes >= MIN_GAIN_BYTES) {
        await runCommand(
          'sfdisk',
          ['--no-reread', '--no-tell-kernel', '-N', String(last.number), disk.path],
          { input: ', +\n' },
        );
        await rereadPartitions(plan, at);
      }
      const now = lastPartition(listPartitions(disk.name, at))?.sizeBytes ?? 0;
      return `partition ${last.number}: ${last.sizeBytes} → ${now} bytes, ${await growFileSystem(path, now)}`;
    },
  };
}

function lastPartition(partitions: readonly Partition[]): Partition | undefined {
  return [...partitions].sort((a, b) => a.startBytes - b.startBytes).at(-1);
}

/**
 * Returns the content of a partition that must not grow, or null when its file system can. Pure.
 */
export function keptContent(tags: ReadonlyMap<string, string>): string | null {
  if (RECOVERY_TYPES.includes(tags.get('PART_ENTRY_TYPE') ?? '')) return 'a recovery system';
  const type = tags.get('TYPE');
  if (type === undefined) return 'no known file system';
  if (GROWABLE.includes(type)) return null;
  return type === 'LVM2_member' ? 'LVM: use growpart and pvresize in the guest' : type;
}

async function probe(path: string): Promise<ReadonlyMap<string, string>> {
  return parseBlkid((await tryCommand('blkid', ['-p', '-o', 'export', path])).stdout);
}

/** Grows the file system on a device to the device's size. @returns a sentence for the log */
export async function growFileSystem(path: string, sizeBytes: number): Promise<string> {
  const type = (await probe(path)).get('TYPE') ?? 'none';
  switch (type) {
    case 'ext2':
    case 'ext3':
    case 'ext4': {
      // 1: errors were corrected.
      const checked = await tryCommand('e2fsck', ['-f', '-p', path]);
      if (checked.status > 1) throw commandFailure(`e2fsck ${path}`, checked);
      await runCommand('resize2fs', [path]);
      return `${type} grown`;
    }
    case 'xfs':
      await whileMounted(path, type, ['-o', 'nouuid'], () =>
        runCommand('xfs_growfs', [GROW_MOUNT]),
      );
      return 'xfs grown';
    case 'btrfs':
      if (sizeBytes < MIN_BTRFS_BYTES) return 'btrfs below 256 MiB not grown';
      await whileMounted(path, type, [], () =>
        runCommand('btrfs', ['filesystem', 'resize', 'max', GROW_MOUNT]),
      );
      return 'btrfs grown';
    default:
      return `file system (${type}) not grown`;
  }
}

async function whileMounted(
  path: string,
  type: string,
  options: readonly string[],
  work: () => Promise<unknown>,
): Promise<void> {
  await tryCommand('modprobe', [type]);
  mkdirSync(GROW_MOUNT, { recursive: true });
  await runCommand('mount', ['-t', type, ...options, path, GROW_MOUNT]);
  try {
    await work();
  } finally {
    await runCommand('umount', [GROW_MOUNT]);
  }
}
