import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '#shared/abort/until.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { CommandFailed } from '#shared/process/run.ts';
import { type BoundCommands, createBoundCommands, NOT_FOUND } from '../volumes/bound-commands.ts';
import { looksAt } from './lvm-filter.ts';
import { isOfSnapshot } from '../volumes/volume-names.ts';
import type { Named, VolumeSystem } from '../volumes/volume-system.ts';
import { datasetRoomHint, zfsErrors } from './zfs-errors.ts';
import {
  DATASET_FIELDS,
  groupsOf,
  isLeft,
  isOurs,
  OWN_SNAPSHOT,
  parseDatasets,
  parseSnapshots,
  poolOf,
  SNAPSHOT_FIELDS,
  volumesOf,
  type Dataset,
  type ZfsSnapshot,
} from './zfs-report.ts';

const ZVOLS = '/dev/zvol';
/** The program that udev's rule runs for the name of a device. */
const ZVOL_ID = '/lib/udev/zvol_id';
const DEVICE = /^\/dev\/zd\d+$/;
/** How long udev may take to name a device: seconds on a busy host. */
const NAMED_WITHIN_MS = 30_000;
const LOOK_MS = 50;
/** How often a destruction is retried while udev has the device open. */
const BUSY_TRIES = 10;
const BUSY_WAIT_MS = 500;

/** Runs ZFS' commands for disks of the template `zfs`: sparse volumes without a reservation. */
export function createZfs(
  commands: BoundCommands = createBoundCommands('ZFS'),
  busyWaitMs: number = BUSY_WAIT_MS,
): VolumeSystem {
  const read = (command: string, ...args: readonly string[]): Promise<string> =>
    orMissing(commands.read('zfs', [command, ...args]));
  const change = (command: string, ...args: readonly string[]): Promise<string> =>
    orMissing(commands.change('zfs', [command, ...args]));
  const listDatasets = async (): Promise<readonly Dataset[]> =>
    parseDatasets(await read('list', '-Hp', '-t', 'filesystem,volume', '-o', DATASET_FIELDS));
  const isNamed = async (path: string): Promise<boolean> => {
    try {
      const device = await realpath(join(ZVOLS, path));
      if (!DEVICE.test(device) || !(await stat(device)).isBlockDevice()) return false;
      // A stale name that udev has not removed yet may point to a device number in use by another
      // volume.
      return (await commands.read(ZVOL_ID, [device])).trim() === path;
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT' || error instanceof CommandFailed) return false;
      throw error;
    }
  };
  const untilNamed = async (path: string): Promise<void> => {
    const limits = { everyMs: LOOK_MS, limitMs: NAMED_WITHIN_MS };
    if (!(await until(() => isNamed(path), limits))) throw unnamed(path);
  };
  const listSnapshots = async (depth: number, paths: readonly string[]) =>
    parseSnapshots(
      await read('list', '-Hp', '-t', 'snapshot', ...['-o', SNAPSHOT_FIELDS, '-s', 'createtxg'], ...['-d', `${depth}`, ...paths]), // prettier-ignore
    );
  /** Destroys a snapshot with its last clone, or at once if it has none. */
  const giveUp = ({ of, name }: Pick<ZfsSnapshot, 'of' | 'name'>): Promise<string> =>
    change('destroy', '-d', `${of}@${name}`);
  const giveUpLeft = async (path: string): Promise<void> => {
    for (const left of (await listSnapshots(1, [path])).filter(isLeft)) await giveUp(left);
  };
  /** Promotes clones, so that they keep the blocks they share with this volume. */
  const handOver = async (path: string): Promise<void> => {
    for (;;) {
      const cloned = (await listSnapshots(1, [path])).filter(({ clones }) => clones.length > 0);
      const last = cloned.findLast(({ name }) => isOurs(name));
      const [heir] = last?.clones ?? [];
      if (heir === undefined) return;
      await change('promote', heir);
    }
  };
  const destroy = async (path: string): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      try {
        await change('destroy', path);
        return;
      } catch (error) {
        const isBusy = error instanceof CommandFailed && BUSY.test(error.stderr);
        if (!isBusy || tries === BUSY_TRIES) throw error;
        await sleep(busyWaitMs);
      }
    }
  };
  return {
    label: 'ZFS volumes',
    roomName: 'zvols',
    errors: zfsErrors,
    placeOf: ({ dataset = '' }) => ({ group: dataset, pool: poolOf(dataset) }),
    parsePlace: (dataset) => ({ group: dataset, pool: poolOf(dataset) }),
    pathOf: (volume) => join(ZVOLS, pathOf(volume)),
    isThere: (volume) => isNamed(pathOf(volume)),
    listGroups: async () => groupsOf(await listDatasets()),
    listVolumes: async () => {
      const datasets = await listDatasets();
      const groups = new Set(
        datasets.flatMap((one) =>
          one['gnt:instance'] === null || one.volsize === null ? [] : [groupOf(one.name)],
        ),
      );
      const snapshots = groups.size === 0 ? [] : await listSnapshots(2, [...groups]);
      return volumesOf(datasets, snapshots, (path) => existsSync(join(ZVOLS, path)));
    },
    isScanned: async () => {
      const full = ['--typeconfig', 'full', 'devices/filter', 'devices/global_filter'];
      try {
        // Every zvol has names such as these.
        const config = await commands.read('lvm', ['lvmconfig', ...full]);
        return looksAt(config, ['/dev/zd0', '/dev/zvol/pool/disk', '/dev/pool/disk']);
      } catch (error) {
        if (error instanceof CommandFailed && error.exitStatus === NOT_FOUND) return false;
        throw error;
      }
    },
    create: async ({ group, name, sizeBytes, tags }) => {
      const path = pathOf({ group, name });
      // The host ignores the guest's partitions.
      const how = ['-s', '-V', `${sizeBytes}`, '-o', 'volmode=dev', ...labelsOf(tags)];
      await orFull(group, change('create', ...how, path));
      await untilNamed(path);
    },
    clone: async (origin, { name, tags, isActive }) => {
      const of = pathOf(origin);
      const made = pathOf({ group: origin.group, name });
      const snapshot = { of, name: `${OWN_SNAPSHOT}${randomUUID()}` };
      const how = ['-o', `volmode=${isActive ? 'dev' : 'none'}`, ...labelsOf(tags)];
      await orFull(origin.group, change('snapshot', `${of}@${snapshot.name}`));
      try {
        await orFull(origin.group, change('clone', ...how, `${of}@${snapshot.name}`, made));
      } finally {
        await giveUp(snapshot);
      }
      if (isActive) await untilNamed(made);
    },
    extend: async (volume, sizeBytes) => {
      await orFull(volume.group, change('set', `volsize=${sizeBytes}`, pathOf(volume)));
    },
    rename: async (volume, name) => {
      const to = pathOf({ group: volume.group, name });
      await change('rename', pathOf(volume), to);
      if (!isOfSnapshot(name)) await untilNamed(to);
    },
    remove: async (volume) => {
      const path = pathOf(volume);
      await handOver(path);
      // Only own snapshots without clones. An administrator's snapshots stay and prevent the
      // destruction.
      for (const own of (await listSnapshots(1, [path])).filter(({ name }) => isOurs(name)))
        await giveUp(own);
      await destroy(path);
    },
    activate: async (volume) => {
      await giveUpLeft(pathOf(volume));
      await untilNamed(pathOf(volume));
    },
    tag: async (volume, what) => {
      const [key = ''] = 'remove' in what ? what.remove.split('=') : [];
      if ('add' in what) await change('set', what.add, pathOf(volume));
      else await change('inherit', key, pathOf(volume));
    },
    // A new ZFS volume never holds other tenants' bytes.
    zero: () => Promise.reject(new Error('a ZFS volume was about to be zeroed')),
  };
}

/** ZFS' messages when a pool, a quota or a reservation is full. */
const FULL = /out of space|no space left|quota/i;
const BUSY = /is busy/i;
const NOT_LOADED = /modules? (?:are|is) not loaded|modprobe zfs|\/dev\/zfs/i;

function pathOf({ group, name }: Named): string {
  return `${group}/${name}`;
}

function groupOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function labelsOf(tags: readonly string[]): readonly string[] {
  return tags.flatMap((tag) => ['-o', tag]);
}

/** Other failures carry their own message. */
async function orMissing(asked: Promise<string>): Promise<string> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    if (error.exitStatus === NOT_FOUND) {
      throw new AppError('HOST_PREREQUISITE', 'this node has no ZFS: the command zfs is missing', {
        hint: 'Install zfsutils-linux, and zfs-dkms with the kernel headers if the kernel has no ZFS module (both in Debian contrib).',
        cause: error,
      });
    }
    if (!NOT_LOADED.test(error.stderr)) throw error;
    throw new AppError('HOST_PREREQUISITE', 'the kernel of this node has not loaded ZFS', {
      hint: 'Run modprobe zfs. The package zfs-dkms builds the module for the running kernel.',
      cause: error,
    });
  }
}

async function orFull(dataset: string, done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!(error instanceof CommandFailed) || !FULL.test(error.stderr)) throw error;
    throw new AppError('DISK_FULL', `the ZFS dataset '${dataset}' has no room for it`, {
      hint: datasetRoomHint(dataset),
      cause: error,
    });
  }
}

function unnamed(path: string): AppError {
  return new AppError('DISK_MISSING', `${join(ZVOLS, path)} does not lead to the volume ${path}`, {
    details: { path: join(ZVOLS, path) },
    hint: 'udev creates that name: run udevadm trigger --subsystem-match=block, and check systemctl status systemd-udevd',
  });
}
