import { mkdirSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { parseBlkid } from './file-systems.ts';
import type { FileSystem } from './fstab.ts';
import { mountOne } from './mount-one.ts';
import { lstatIfThere, TargetRoot } from './target-root.ts';

/** Where the partition is mounted whose file is the system. */
export const KAIROS_STATE_PATH = '/run/gnt/kairos-state';
const LOOP_CONTROL = '/dev/loop-control';
const ACTIVE_FOLDER = 'cOS';
const ACTIVE_IMAGE = 'active.img';
/** What its kernel writes: Kairos makes ext2. */
const IMAGE_TYPES = ['ext2', 'ext3', 'ext4'];

/** The disks of an installed Kairos, by what they are for. */
export interface KairosDisks {
  /** Holds the systems as files: active, and passive to fall back to. */
  readonly state: FileSystem;
  /** Its configuration, /oem. */
  readonly oem: FileSystem | null;
  /** What lasts, /usr/local. */
  readonly persistent: FileSystem | null;
}

/**
 * The layout of Kairos, known by its labels; null where there is none of them. Pure.
 * @throws AppError NOTHING_TO_MOUNT for a Kairos whose system is not there yet, or no file
 */
export function findKairos(fileSystems: readonly FileSystem[]): KairosDisks | null {
  const find = (name: string): FileSystem | null =>
    fileSystems.find(({ label }) => label === `COS_${name}`) ?? null;
  const [state, oem, persistent] = [find('STATE'), find('OEM'), find('PERSISTENT')];
  if (state) return { state, oem, persistent };
  if (oem === null && persistent === null && find('RECOVERY') === null) return null;
  throw new AppError(
    'NOTHING_TO_MOUNT',
    'the Kairos image has no COS_STATE partition: its system is created at its first boot, or is a signed file',
    {
      hint: 'Hooks and packages cannot write to this system. Configure it with --user-data.',
    },
  );
}

/**
 * Mounts the system that Kairos boots, a file in a partition, at `target`, and below it what Kairos
 * has there when it runs steps in it: /oem and /usr/local. At run time the system is read-only;
 * what is written into its file now is part of it until the guest's next upgrade.
 * @throws AppError NOTHING_TO_MOUNT
 */
export async function mountKairos(
  { state, oem, persistent }: KairosDisks,
  target: string,
  access: readonly string[],
  reporter: StageReporter,
): Promise<string> {
  // Without scripts nobody has asked for it yet.
  if (lstatIfThere(LOOP_CONTROL) === null) await tryCommand('modprobe', ['loop']);
  mkdirSync(KAIROS_STATE_PATH, { recursive: true });
  await mountOne(state, KAIROS_STATE_PATH, state.path, null, access);
  const active = await probeActive();
  await mountOne(active, target, '/', null, ['loop', ...access]);
  const mounted = [`Kairos: active system in ${state.path} mounted on /`];
  const root = new TargetRoot(target);
  for (const [fileSystem, ...names] of [
    [oem, 'oem'],
    [persistent, 'usr', 'local'],
  ] as const) {
    if (fileSystem === null) continue;
    const directory = root.openDirectory(names, { create: true });
    try {
      const where = directory.path.replace('self', String(process.pid));
      await mountOne(fileSystem, where, `/${names.join('/')}`, null, access);
      mounted.push(`${fileSystem.path} on /${names.join('/')}`);
    } finally {
      directory.close();
    }
  }
  reporter.log(
    'Kairos: changes in /oem and /usr/local persist, others are lost at the next upgrade; the passive and recovery systems are unchanged',
  );
  return mounted.join(', ');
}

/** A path that no link of the image's leads elsewhere; the file is looked at, not only its name. */
async function probeActive(): Promise<FileSystem> {
  const folder = `${KAIROS_STATE_PATH}/${ACTIVE_FOLDER}`;
  const path = `${folder}/${ACTIVE_IMAGE}`;
  const isThere =
    lstatIfThere(folder)?.isDirectory() === true && lstatIfThere(path)?.isFile() === true;
  if (!isThere)
    throw unusable(`COS_STATE has no ${ACTIVE_FOLDER}/${ACTIVE_IMAGE}: no system is installed`);
  const type = parseBlkid((await tryCommand('blkid', ['-p', '-o', 'export', path])).stdout).get(
    'TYPE',
  );
  if (type === undefined || !IMAGE_TYPES.includes(type))
    throw unusable(
      `${ACTIVE_FOLDER}/${ACTIVE_IMAGE} is of type ${type ?? 'unknown'}, which is not writable`,
    );
  return {
    ...{ path, aliases: [path], type, uuid: null, label: null, partUuid: null },
    ...{ partLabel: null, partType: null, diskIndex: null, partition: null },
  };
}

function unusable(reason: string): AppError {
  return new AppError('NOTHING_TO_MOUNT', `Kairos: ${reason}`, {
    hint: 'Hooks and packages need a Kairos system that is a file. Configure this one with --user-data.',
  });
}
