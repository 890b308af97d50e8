import { readFileSync } from 'node:fs';
import { isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import {
  type Candidate,
  chooseRoot,
  describeOther,
  type ForeignTree,
  isAlone,
  isBootPartition,
} from './choose-root.ts';
import { type FileSystem, findRootSource, matchFstabSource } from './fstab.ts';
import { mountOne, writableTypes } from './mount-one.ts';
import { lstatIfThere, TargetRoot, treeFault } from './target-root.ts';

/** Entries that mark a tree as the guest's root, best first. */
const ROOT_MARKS = ['etc/os-release', 'usr/lib/os-release', 'etc/fstab', 'etc'];
const BTRFS_ROOT_SUBVOLUMES = [null, '@', 'root', '@rootfs', '@/.snapshots/1/snapshot'];
const BOOT_MARKS = ['loader', 'grub', 'grub2', 'EFI'];
const OSTREE_MARKS = ['ostree/repo', 'ostree/deploy'];
/** An fstab is a page of text. A larger file may be sparse and endless. */
const MAX_FSTAB_BYTES = 256 * 1024;

/**
 * Mounts the instance's root at `target`.
 * @throws AppError NOTHING_TO_MOUNT that lists the file systems on the disks
 */
export async function mountRoot(
  fileSystems: readonly FileSystem[],
  target: string,
  access: readonly string[],
  reporter: StageReporter,
): Promise<Candidate> {
  const only = await mountOnlyOne(fileSystems, target, access);
  if (only) return only;
  const candidates = await listCandidates(fileSystems, target, reporter);
  const root = chooseRoot(candidates, fileSystems);
  for (const other of candidates)
    if (other.rank !== null && other.fileSystem !== root.fileSystem)
      reporter.log(describeOther(other, root));
  await mountOne(root.fileSystem, target, '/', root.subvolume, access);
  return root;
}

/**
 * Mounts the only file system on the disks directly, without a read-only inspection.
 * @returns null when it is not alone, not mountable, or not a root
 */
async function mountOnlyOne(
  fileSystems: readonly FileSystem[],
  target: string,
  access: readonly string[],
): Promise<Candidate | null> {
  const only = fileSystems.find(({ type }) => Object.hasOwn(writableTypes, type));
  if (!only || ownValue(writableTypes, only.type) !== null || isBootPartition(only)) return null;
  if (!isAlone(only, fileSystems)) return null;
  try {
    await mountOne(only, target, '/', null, access);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
  const found = lookAt(target);
  if (found.foreign === null) return { fileSystem: only, subvolume: null, ...found };
  await runCommand('umount', [target]);
  return null;
}

async function listCandidates(
  fileSystems: readonly FileSystem[],
  target: string,
  reporter: StageReporter,
): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  for (const fileSystem of fileSystems) {
    if (!Object.hasOwn(writableTypes, fileSystem.type) || isBootPartition(fileSystem)) continue;
    const module = ownValue(writableTypes, fileSystem.type);
    if (module) await tryCommand('modprobe', [module]);
    for (const subvolume of fileSystem.type === 'btrfs' ? BTRFS_ROOT_SUBVOLUMES : [null]) {
      const candidate = await tryAsRoot(fileSystem, subvolume, target, fileSystems, reporter);
      if (candidate !== null) candidates.push(candidate);
    }
  }
  return candidates;
}

/** @returns null when it cannot be mounted */
async function tryAsRoot(
  fileSystem: FileSystem,
  subvolume: string | null,
  target: string,
  fileSystems: readonly FileSystem[],
  reporter: StageReporter,
): Promise<Candidate | null> {
  try {
    await mountOne(fileSystem, target, '/', subvolume, ['ro', 'noexec']);
  } catch (error) {
    if (subvolume === null) reporter.log(messageOf(error));
    return null;
  }
  try {
    const { rank, foreign } = lookAt(target);
    if (rank === null) return { fileSystem, subvolume, rank, foreign };
    // Among equal marks, a tree whose fstab mounts itself as the root wins.
    const own = findRootSource(readFstab(new TargetRoot(target)));
    const isOwn = own !== null && matchFstabSource(own, fileSystems) === fileSystem;
    return { fileSystem, subvolume, foreign, rank: isOwn ? rank - 0.5 : rank };
  } finally {
    await runCommand('umount', [target]);
  }
}

function lookAt(path: string): Pick<Candidate, 'rank' | 'foreign'> {
  const rank = rankTree(path);
  return { rank, foreign: rank === null ? findForeign(path) : null };
}

/**
 * Returns the index of the best root mark in a tree, or null. Links are resolved inside the tree,
 * never in the appliance's root.
 */
export function rankTree(path: string): number | null {
  const root = new TargetRoot(path);
  const rank = ROOT_MARKS.findIndex((mark) => isThere(root, mark));
  return rank < 0 ? null : rank;
}

function findForeign(path: string): ForeignTree | null {
  const root = new TargetRoot(path);
  if (OSTREE_MARKS.every((mark) => isThere(root, mark))) return 'an ostree repository';
  return BOOT_MARKS.some((mark) => isThere(root, mark)) ? 'boot files' : null;
}

function isThere(root: TargetRoot, path: string): boolean {
  const names = path.split('/');
  const name = names.pop() ?? '';
  return inDirectory(root, names, (directory) => lstatIfThere(`${directory}/${name}`)) !== null;
}

/** Errors of a damaged file system. EBADMSG (74) and EUCLEAN (117) have no name in Node. */
const DAMAGED = /^EIO$|^Unknown system error -(?:74|117)$/;

/**
 * @returns null when the directory is missing
 * @throws AppError for a damaged file system, whose content is unknown
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
 * Reads etc/fstab; empty when it is missing or unreasonably large.
 * @throws AppError when it cannot be read
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
