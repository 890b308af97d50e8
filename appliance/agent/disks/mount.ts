import { mkdirSync } from 'node:fs';
import { isAppError } from '#shared/errors/app-error.ts';
import type { StageReporter } from '../report/stage.ts';
import { describeRoot } from './choose-root.ts';
import { mountRoot, readFstab } from './find-root.ts';
import { type FileSystem, type FstabEntry, matchFstabSource, parseFstab } from './fstab.ts';
import { findKairos, mountKairos } from './kairos-root.ts';
import { mountOne, writableTypes } from './mount-one.ts';
import { TargetRoot } from './target-root.ts';

export const TARGET_PATH = '/run/gnt/target';

const MAX_NAMED = 20;

/**
 * Mounts the instance's root at TARGET_PATH, and the mounts of its fstab below it.
 * @param mayExecute whether programs of the instance will run
 * @returns a sentence that lists the mounts
 * @throws AppError NOTHING_TO_MOUNT that lists the file systems on the disks
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
  const root = await mountRoot(fileSystems, TARGET_PATH, access, reporter);
  const mounted = [`${describeRoot(root)} on /`];
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
    reporter.log(`fstab mounts ${line}: skipped, it is not on the instance's disks`);
  if (unknown.length > MAX_NAMED)
    reporter.log(
      `fstab has ${unknown.length - MAX_NAMED} more mounts that are not on the instance's disks`,
    );
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
