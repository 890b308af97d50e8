import { basename } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';
import type { FileSystem } from './fstab.ts';

/** File systems that the appliance's kernel writes, with their module; ext4 is built in. */
export const writableTypes: Readonly<Record<string, string | null>> = {
  ext2: null,
  ext3: null,
  ext4: null,
  xfs: 'xfs',
  btrfs: 'btrfs',
  vfat: 'vfat',
};

const MAX_LINES = 20;

/** @throws AppError COMMAND_FAILED with the kernel's message */
export async function mountOne(
  fileSystem: FileSystem,
  where: string,
  mountPoint: string,
  subvolume: string | null,
  access: readonly string[],
): Promise<void> {
  const { path, type } = fileSystem;
  // Mounting replays the guest's journal even for a read-only look, so that its names are correct.
  const options = [...access, 'nodev', 'nosuid'];
  if (subvolume !== null) options.push(`subvol=${subvolume}`);
  if (type === 'xfs') options.push('nouuid');
  // vfat has no owners; setting them must not fail.
  if (type === 'vfat') options.push('quiet');
  const result = await tryCommand('mount', ['-t', type, '-o', options.join(','), path, where]);
  if (result.status === 0) return;
  const kernel = (await tryCommand('dmesg', ['--notime'])).stdout
    .trimEnd()
    .split('\n')
    .slice(-MAX_LINES)
    .findLast((line) => line.includes(basename(path)));
  const said = result.stderr.trim().split('\n')[0] ?? '';
  throw new AppError(
    'COMMAND_FAILED',
    `cannot mount ${path} (${type}) on ${mountPoint}: ${(kernel ?? said).slice(0, 500)}`,
    { hint: 'Check the file system of the image, for example with fsck.' },
  );
}
