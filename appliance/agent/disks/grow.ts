import type { InstallPlan } from '#shared/contract/plan.ts';
import { mkdirSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { commandFailure, runCommand, tryCommand } from '../process/command.ts';
import { parseBlkid, rereadPartitions } from './file-systems.ts';
import { type DiskLocations, listDisksBySerial, listPartitions, type Partition } from './disks.ts';
import type { Stage } from '../report/stage.ts';

const GROW_MOUNT = '/run/gnt/grow';
/** Less is not worth a write to the partition table. */
const MIN_GAIN_BYTES = 4 * MIB;
const FIRST_LOGICAL_PARTITION = 5;
/** The kernel resizes no btrfs to less. */
const MIN_BTRFS_BYTES = 256 * MIB;

/**
 * Grows the last partition of the first disk, and the file system in it, to the size of the disk.
 */
export function createGrowStage(plan: InstallPlan, at: DiskLocations): Stage {
  return {
    name: 'grow',
    async run() {
      const first = plan.disks[0];
      const disk = first && listDisksBySerial(at).get(first.serial);
      if (!disk) throw new AppError('DISK_MISSING', 'there is no first disk');
      await rereadPartitions(plan, at);
      const last = lastPartition(listPartitions(disk.name, at));
      if (!last) return `${await growFileSystem(disk.path, disk.sizeBytes)} on the whole disk`;
      const table = parseBlkid(
        (await tryCommand('blkid', ['-p', '-o', 'export', disk.path])).stdout,
      ).get('PTTYPE');
      if (table !== 'gpt' && last.number >= FIRST_LOGICAL_PARTITION)
        return `not grown: the last partition (${last.number}) is a logical one`;
      // The backup header of a GPT belongs at the end of the disk, whether there is something to
      // grow or not.
      if (table === 'gpt') await runCommand('sfdisk', ['--relocate', 'gpt-bak-std', disk.path]);
      const path = `${at.dev}/${last.name}`;
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

/** Grows what is on a device to its size. @returns a sentence for the reader */
export async function growFileSystem(path: string, sizeBytes: number): Promise<string> {
  const probed = await tryCommand('blkid', ['-p', '-o', 'export', path]);
  const type = parseBlkid(probed.stdout).get('TYPE') ?? 'none';
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
