import { mkdirSync, readFileSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { type FileSystem, matchFstabSource, parseFstab } from './fstab.ts';
import { lstatIfThere, TargetRoot } from './target-root.ts';

/** Where the instance's root file system is mounted inside the appliance. */
export const TARGET_PATH = '/run/gnt/target';

/** File systems that the appliance's kernel writes, with the module that does it; ext4 is built in. */
const writableTypes: Readonly<Record<string, string | null>> = {
  ext2: null,
  ext3: null,
  ext4: null,
  xfs: 'xfs',
  btrfs: 'btrfs',
  vfat: 'vfat',
};

/** What makes a file system the guest's root, best first. */
const ROOT_MARKS = ['etc/os-release', 'usr/lib/os-release', 'etc/fstab', 'etc'];
const BTRFS_ROOT_SUBVOLUMES = [null, '@', 'root', '@rootfs', '@/.snapshots/1/snapshot'];

interface Candidate {
  readonly fileSystem: FileSystem;
  readonly subvolume: string | null;
  /** Index in ROOT_MARKS; its length when there is no mark. */
  readonly rank: number;
}

/**
 * Mounts the instance's root and what its fstab mounts below it, at TARGET_PATH.
 * @param mayExecute programs of the instance are going to run
 * @returns a sentence with what is where
 * @throws AppError NOTHING_TO_MOUNT that lists what is on the disks
 */
export async function mountInstance(
  fileSystems: readonly FileSystem[],
  mayExecute: boolean,
  reporter: StageReporter,
): Promise<string> {
  mkdirSync(TARGET_PATH, { recursive: true });
  const root = await findRoot(fileSystems, reporter);
  if (!root) throw nothingToMount(fileSystems);
  const access = mayExecute ? ['rw'] : ['rw', 'noexec'];
  await mount(root.fileSystem, TARGET_PATH, root.subvolume, access);
  const mounted = [`${describe(root)} on /`];
  const rootDirectory = new TargetRoot(TARGET_PATH);
  for (const entry of parseFstab(readFstab(rootDirectory))) {
    const fileSystem = matchFstabSource(entry.source, fileSystems);
    if (!fileSystem || !(fileSystem.type in writableTypes)) {
      reporter.log(
        `fstab mounts ${entry.source} on ${entry.mountPoint}: not mounted, it is not on the instance's disks`,
      );
      continue;
    }
    const subvolume =
      entry.options.find((option) => option.startsWith('subvol='))?.slice(7) ?? null;
    const directory = rootDirectory.openDirectory(entry.mountPoint.split('/'), { create: true });
    try {
      await mount(
        fileSystem,
        directory.path.replace('self', String(process.pid)),
        subvolume,
        access,
      );
    } finally {
      directory.close();
    }
    mounted.push(`${fileSystem.path} on ${entry.mountPoint}`);
  }
  return mounted.join(', ');
}

/** Takes everything off again, innermost first. */
export async function unmountInstance(): Promise<string> {
  const result = await tryCommand('umount', ['--recursive', TARGET_PATH]);
  if (result.status === 0) return 'file systems unmounted';
  throw new AppError('COMMAND_FAILED', `cannot unmount the instance: ${result.stderr.trim()}`);
}

export function isInstanceMounted(): boolean {
  return readFileSync('/proc/self/mounts', 'utf8').includes(` ${TARGET_PATH} `);
}

async function findRoot(
  fileSystems: readonly FileSystem[],
  reporter: StageReporter,
): Promise<Candidate | null> {
  let best: Candidate | null = null;
  for (const fileSystem of fileSystems) {
    if (!(fileSystem.type in writableTypes)) continue;
    const module = writableTypes[fileSystem.type];
    if (module) await tryCommand('modprobe', [module]);
    for (const subvolume of fileSystem.type === 'btrfs' ? BTRFS_ROOT_SUBVOLUMES : [null]) {
      const rank = await rankAsRoot(fileSystem, subvolume, reporter);
      if (rank !== null && (best === null || rank < best.rank))
        best = { fileSystem, subvolume, rank };
    }
  }
  return best;
}

/** @returns null when it cannot be mounted */
async function rankAsRoot(
  fileSystem: FileSystem,
  subvolume: string | null,
  reporter: StageReporter,
): Promise<number | null> {
  try {
    await mount(fileSystem, TARGET_PATH, subvolume, ['ro', 'noexec']);
  } catch (error) {
    if (subvolume === null)
      reporter.log(`${fileSystem.path} (${fileSystem.type}): ${String(error)}`);
    return null;
  }
  try {
    const rank = ROOT_MARKS.findIndex((mark) => lstatIfThere(`${TARGET_PATH}/${mark}`) !== null);
    // A FAT file system without any mark is a boot partition: only when there is nothing else.
    if (rank < 0) return ROOT_MARKS.length + (fileSystem.type === 'vfat' ? 1 : 0);
    return rank;
  } finally {
    await runCommand('umount', [TARGET_PATH]);
  }
}

async function mount(
  fileSystem: FileSystem,
  where: string,
  subvolume: string | null,
  access: readonly string[],
): Promise<void> {
  // The guest's journal is replayed also for a read-only look: then its names are right.
  const options = [...access, 'nodev', 'nosuid'];
  if (subvolume !== null) options.push(`subvol=${subvolume}`);
  if (fileSystem.type === 'xfs') options.push('nouuid');
  await runCommand('mount', [
    '-t',
    fileSystem.type,
    '-o',
    options.join(','),
    fileSystem.path,
    where,
  ]);
}

function readFstab(root: TargetRoot): string {
  const directory = root.openDirectory(['etc'], { create: true });
  try {
    const path = `${directory.path}/fstab`;
    return lstatIfThere(path)?.isFile() === true ? readFileSync(path, 'utf8') : '';
  } finally {
    directory.close();
  }
}

function describe(root: Candidate): string {
  const { path, type } = root.fileSystem;
  return `${path} (${type}${root.subvolume === null ? '' : `, subvolume ${root.subvolume}`})`;
}

function nothingToMount(fileSystems: readonly FileSystem[]): AppError {
  const seen = fileSystems
    .map((fileSystem) => `${fileSystem.path} (${fileSystem.type})`)
    .join(', ');
  return new AppError(
    'NOTHING_TO_MOUNT',
    seen === ''
      ? 'there is no file system on the disks of the instance'
      : `no file system that can be mounted: ${seen}`,
    {
      hint: 'the package needs an ext4, xfs, btrfs or vfat file system on a disk, a partition or a logical volume',
    },
  );
}
