import { mkdirSync, readFileSync } from 'node:fs';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import {
  type FileSystem,
  findRootSource,
  type FstabEntry,
  matchFstabSource,
  parseFstab,
} from './fstab.ts';
import { findKairos, mountKairos } from './kairos-root.ts';
import { mountOne, writableTypes } from './mount-one.ts';
import { lstatIfThere, TargetRoot, treeFault } from './target-root.ts';

/** Where the instance's root file system is mounted inside the appliance. */
export const TARGET_PATH = '/run/gnt/target';

/** What makes a file system the guest's root, best first. */
const ROOT_MARKS = ['etc/os-release', 'usr/lib/os-release', 'etc/fstab', 'etc'];
const BTRFS_ROOT_SUBVOLUMES = [null, '@', 'root', '@rootfs', '@/.snapshots/1/snapshot'];

/** An fstab is a page of text; this much of one can be sparse and endless. */
const MAX_FSTAB_BYTES = 256 * 1024;
/** Lines that are told one by one. */
const MAX_NAMED = 20;

interface Root {
  readonly fileSystem: FileSystem;
  readonly subvolume: string | null;
  readonly isMounted: boolean;
}

interface Candidate extends Root {
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
  const access = mayExecute ? ['rw'] : ['rw', 'noexec'];
  const kairos = findKairos(fileSystems);
  if (kairos) return await mountKairos(kairos, TARGET_PATH, access, reporter);
  const root = (await mountOnlyOne(fileSystems, access)) ?? (await findRoot(fileSystems, reporter));
  if (!root) throw nothingToMount(fileSystems);
  if (!root.isMounted) await mountOne(root.fileSystem, TARGET_PATH, '/', root.subvolume, access);
  const mounted = [`${describe(root)} on /`];
  const rootDirectory = new TargetRoot(TARGET_PATH);
  const unknown: string[] = [];
  for (const entry of parseFstab(readFstab(rootDirectory))) {
    const fileSystem = matchFstabSource(entry.source, fileSystems);
    if (!fileSystem || !Object.hasOwn(writableTypes, fileSystem.type)) {
      unknown.push(`${entry.source} on ${entry.mountPoint}`);
      continue;
    }
    try {
      await mountBelow(rootDirectory, entry, fileSystem, access);
      mounted.push(`${fileSystem.path} on ${entry.mountPoint}`);
    } catch (error) {
      if (!isAppError(error) || !entry.options.includes('nofail')) throw error;
      reporter.log(`${error.message} (nofail)`);
    }
  }
  for (const line of unknown.slice(0, MAX_NAMED))
    reporter.log(`fstab mounts ${line}: not mounted, it is not on the instance's disks`);
  if (unknown.length > MAX_NAMED)
    reporter.log(`fstab mounts ${unknown.length - MAX_NAMED} more that are not on its disks`);
  return mounted.join(', ');
}

async function mountBelow(
  root: TargetRoot,
  entry: FstabEntry,
  fileSystem: FileSystem,
  access: readonly string[],
): Promise<void> {
  const subvolume = entry.options.find((option) => option.startsWith('subvol='))?.slice(7) ?? null;
  const directory = root.openDirectory(entry.mountPoint.split('/'), { create: true });
  try {
    const where = directory.path.replace('self', String(process.pid));
    await mountOne(fileSystem, where, entry.mountPoint, subvolume, access);
  } finally {
    directory.close();
  }
}

/**
 * Where there is nothing to choose from, nothing is looked at first.
 * @returns null where there is, or it cannot be mounted: `findRoot` says why
 */
async function mountOnlyOne(
  fileSystems: readonly FileSystem[],
  access: readonly string[],
): Promise<Root | null> {
  const [only, ...others] = fileSystems.filter(({ type }) => Object.hasOwn(writableTypes, type));
  if (!only || others.length > 0 || writableTypes[only.type] !== null) return null;
  try {
    await mountOne(only, TARGET_PATH, '/', null, access);
    return { fileSystem: only, subvolume: null, isMounted: true };
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/**
 * The first of the best. What else could be a root is told: an image with two of them may mean the
 * other one.
 */
async function findRoot(
  fileSystems: readonly FileSystem[],
  reporter: StageReporter,
): Promise<Candidate | null> {
  const candidates: Candidate[] = [];
  for (const fileSystem of fileSystems) {
    if (!Object.hasOwn(writableTypes, fileSystem.type)) continue;
    const module = writableTypes[fileSystem.type];
    if (module) await tryCommand('modprobe', [module]);
    for (const subvolume of fileSystem.type === 'btrfs' ? BTRFS_ROOT_SUBVOLUMES : [null]) {
      const rank = await rankAsRoot(fileSystem, subvolume, fileSystems, reporter);
      if (rank !== null) candidates.push({ fileSystem, subvolume, rank, isMounted: false });
    }
  }
  const [best, ...others] = candidates.sort((a, b) => a.rank - b.rank);
  for (const other of others) {
    const isRoot = other.rank < ROOT_MARKS.length && other.fileSystem !== best?.fileSystem;
    if (isRoot && best)
      reporter.log(`${describe(other)} looks like a root, ${describe(best)} more so`);
  }
  return best ?? null;
}

/** @returns null when it cannot be mounted */
async function rankAsRoot(
  fileSystem: FileSystem,
  subvolume: string | null,
  fileSystems: readonly FileSystem[],
  reporter: StageReporter,
): Promise<number | null> {
  try {
    await mountOne(fileSystem, TARGET_PATH, '/', subvolume, ['ro', 'noexec']);
  } catch (error) {
    if (subvolume === null) reporter.log(messageOf(error));
    return null;
  }
  try {
    const rank = rankTree(TARGET_PATH);
    // A FAT file system without any mark is a boot partition: only when there is nothing else.
    if (rank === null) return ROOT_MARKS.length + (fileSystem.type === 'vfat' ? 1 : 0);
    // Of two that look alike, the one that mounts itself as the root is meant.
    const own = findRootSource(readFstab(new TargetRoot(TARGET_PATH)));
    const isOwn = own !== null && matchFstabSource(own, fileSystems) === fileSystem;
    return isOwn ? rank - 0.5 : rank;
  } finally {
    await runCommand('umount', [TARGET_PATH]);
  }
}

/**
 * How much the tree at `path` looks like a system's root: the index of the best mark, or null.
 * Links are resolved in the tree itself: one to `/etc` is not the appliance's.
 */
export function rankTree(path: string): number | null {
  const root = new TargetRoot(path);
  const rank = ROOT_MARKS.findIndex((mark) => {
    const names = mark.split('/');
    const name = names.pop() ?? '';
    return inDirectory(root, names, (directory) => lstatIfThere(`${directory}/${name}`)) !== null;
  });
  return rank < 0 ? null : rank;
}

/**
 * What the kernel says of a file system that is damaged: a checksum that is wrong and a structure
 * that makes no sense (74 and 117) have no name in Node.
 */
const DAMAGED = /^EIO$|^Unknown system error -(?:74|117)$/;

/**
 * @returns null when the directory is not there
 * @throws AppError where the file system is damaged: what cannot be read may be there
 */
function inDirectory<T>(
  root: TargetRoot,
  names: readonly string[],
  look: (path: string) => T,
): T | null {
  try {
    const directory = root.openDirectory(names, { create: false });
    try {
      return look(directory.path);
    } finally {
      directory.close();
    }
  } catch (error) {
    if (isAppError(error) && !DAMAGED.test(systemCodeOf(error.cause) ?? '')) return null;
    throw treeFault(error, names);
  }
}

/**
 * The text of etc/fstab; empty when there is none, or none that a system would have.
 * @throws AppError where it cannot be read
 */
export function readFstab(root: TargetRoot): string {
  const text = inDirectory(root, ['etc'], (directory) => {
    const path = `${directory}/fstab`;
    const found = lstatIfThere(path);
    if (found?.isFile() !== true || found.size > MAX_FSTAB_BYTES) return '';
    return readFileSync(path, 'utf8');
  });
  return text ?? '';
}

function describe(root: Root): string {
  const { path, type } = root.fileSystem;
  return `${path} (${type}${root.subvolume === null ? '' : `, subvolume ${root.subvolume}`})`;
}

function nothingToMount(fileSystems: readonly FileSystem[]): AppError {
  const seen = fileSystems
    .slice(0, MAX_NAMED)
    .map((fileSystem) => `${fileSystem.path} (${fileSystem.type})`)
    .join(', ');
  const types = new Set(fileSystems.map(({ type }) => type));
  const hint =
    types.has('crypto_LUKS') || types.has('BitLocker')
      ? 'it is encrypted: use an image that is not, or open it and lay the files over in an OS script, with the key as a secret parameter'
      : types.has('ntfs')
        ? 'NTFS is not written here: use a script of your OS definition, or a package for the guest itself'
        : 'the package needs an ext4, xfs, btrfs or vfat file system on a disk, a partition or a logical volume; after a broken partition table use another image';
  return new AppError(
    'NOTHING_TO_MOUNT',
    seen === ''
      ? 'there is no file system on the disks of the instance'
      : `no file system that can be mounted: ${seen}`,
    { hint },
  );
}
