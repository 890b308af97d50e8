import { mkdirSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { parseBlkid } from './file-systems.ts';
import type { FileSystem } from './fstab.ts';
import { mountOne } from './mount-one.ts';
import { lstatIfThere, TargetRoot } from './target-root.ts';

export const KAIROS_STATE_PATH = '/run/gnt/kairos-state';
const LOOP_CONTROL = '/dev/loop-control';
const ACTIVE_FOLDER = 'cOS';
const ACTIVE_IMAGE = 'active.img';
/** Kairos creates ext2; the appliance's kernel also writes the others. */
const IMAGE_TYPES = ['ext2', 'ext3', 'ext4'];

export interface KairosDisks {
  /** Holds the systems as files: active, and passive as a fallback. */
  readonly state: FileSystem;
  /** Its configuration, /oem. */
  readonly oem: FileSystem | null;
  /** Persistent data, /usr/local. */
  readonly persistent: FileSystem | null;
}

/**
 * Finds the layout of Kairos by its labels; null without any of them. Pure.
 * @throws AppError NOTHING_TO_MOUNT for a Kairos without a system yet, or without a system file
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
 * Mounts the active Kairos system, a file in a partition, at `target`, and /oem and /usr/local in
 * it, as Kairos does for steps. At run time the system is read-only. Changes to its file last until
 * the guest's next upgrade.
 * @throws AppError NOTHING_TO_MOUNT
 */
export async function mountKairos(
  { state, oem, persistent }: KairosDisks,
  target: string,
  access: readonly string[],
  reporter: StageReporter,
): Promise<string> {
  // Without scripts the module is not loaded yet.
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

/** Checks the path without following the image's links, and the file's content. */
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
    path,
    aliases: [path],
    type,
    uuid: null,
    label: null,
    partUuid: null,
    partLabel: null,
    partType: null,
    diskIndex: null,
    partition: null,
  };
}

function unusable(reason: string): AppError {
  return new AppError('NOTHING_TO_MOUNT', `Kairos: ${reason}`, {
    hint: 'Hooks and packages need a Kairos system that is a file. Configure this one with --user-data.',
  });
}
