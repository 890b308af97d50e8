import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { type DiskLocations, listDisksBySerial } from './disks.ts';
import { deactivateVolumeGroups, listInstanceDevices } from './file-systems.ts';
import { unescapeOctal } from './fstab.ts';
import { KAIROS_STATE_PATH } from './kairos-root.ts';
import { TARGET_PATH } from './mount.ts';

const MAX_LEFT_MOUNTS = 1000;

/**
 * Unmounts all file systems of the instance, including mounts that scripts and hooks left.
 * @throws AppError COMMAND_FAILED that names remaining mounts, or a disk in use
 */
export async function unmountDisks(
  plan: InstallPlan,
  at: DiskLocations,
  reporter: StageReporter,
): Promise<string> {
  const disks = listDisksBySerial(at);
  const own = plan.disks.flatMap(({ serial }) => disks.get(serial) ?? []);
  const devices = new Set(listInstanceDevices(plan, at));
  const wasMounted = listMounts(devices).some(({ where }) => where === TARGET_PATH);
  for (const { device, where } of listMounts(devices).reverse()) {
    const result = await tryCommand('umount', [where]);
    const isOurs =
      where === TARGET_PATH || where === KAIROS_STATE_PATH || where.startsWith(`${TARGET_PATH}/`);
    if (result.status === 0 && !isOurs)
      reporter.log(`${device} was still mounted on ${where}: unmounted`);
  }
  const left = listMounts(devices).map(({ device, where }) => `${device} on ${where}`);
  if (left.length > 0) throw stillUsed(`still mounted: ${left.slice(0, 10).join(', ')}`);
  await deactivateVolumeGroups([...devices], at);
  for (const { path } of own) {
    if (isInUse(path))
      throw stillUsed(`${path} is still in use, so its file systems are not clean`);
  }
  return wasMounted ? 'file systems unmounted' : 'nothing was mounted';
}

export interface ScriptMounts {
  listMounts(): readonly LeftMount[];
  hide(paths: readonly string[]): Promise<void>;
}

/**
 * Unmounts what scripts left mounted, which keeps the instance's disks busy. Mounts that the agent
 * showed to them are not logged.
 * @param world null without scripts
 * @throws AppError COMMAND_FAILED that names remaining mounts, for example below another one
 */
export async function unmountLeft(
  world: ScriptMounts | null,
  reporter: Pick<StageReporter, 'log'>,
): Promise<void> {
  const mounts = world?.listMounts() ?? [];
  await world?.hide(mounts.map(({ where }) => where));
  const isOurs = (where: string): boolean =>
    where === TARGET_PATH || where.startsWith(`${TARGET_PATH}/`);
  const theirs = mounts.filter(({ where }) => !isOurs(where));
  for (const { device, where } of theirs.slice(0, MAX_LEFT_MOUNTS))
    reporter.log(`${device} was still mounted on ${where}: unmounted`);
  const left = (world?.listMounts() ?? []).map(({ device, where }) => `${device} on ${where}`);
  if (left.length > 0) throw stillUsed(`still mounted: ${left.slice(0, 10).join(', ')}`);
}

function stillUsed(what: string): AppError {
  return new AppError('COMMAND_FAILED', `cannot unmount the instance: ${what}`, {
    hint: 'Stop the programs that your scripts and hooks start, and unmount their mounts.',
  });
}

export interface LeftMount {
  readonly device: string;
  readonly where: string;
}

/**
 * Finds mounts of these devices, of logical volumes and of loop devices in `/proc/self/mounts`, in
 * the order of mounting.
 */
export function findMounts(mounts: string, devices: ReadonlySet<string>): LeftMount[] {
  return mounts
    .split('\n')
    .map((line) => line.split(' ').map(unescapeOctal))
    .flatMap(([device = '', where = '']) =>
      devices.has(device) || /^\/dev\/(mapper\/|dm-|loop\d)/.test(device)
        ? [{ device, where }]
        : [],
    )
    .slice(-MAX_LEFT_MOUNTS);
}

function listMounts(devices: ReadonlySet<string>): LeftMount[] {
  return findMounts(readFileSync('/proc/self/mounts', 'utf8'), devices);
}

/**
 * Whether a disk or a part of it is in use: by a mount in another namespace, or after a lazy
 * unmount (open(2), O_EXCL).
 */
function isInUse(path: string): boolean {
  try {
    closeSync(openSync(path, constants.O_RDONLY | constants.O_EXCL));
    return false;
  } catch (error) {
    if (systemCodeOf(error) === 'EBUSY') return true;
    throw error;
  }
}
