import { stat } from 'node:fs/promises';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { CommandFailed } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type BoundCommands, createBoundCommands, NOT_FOUND } from '../volumes/bound-commands.ts';
import { lvmErrors } from './lvm-errors.ts';
import { GROUP_FIELDS, parseGroups, parseVolumes, VOLUME_FIELDS } from './parse-report.ts';
import { volumePath } from '../volumes/volume-names.ts';
import type { Named, VolumeSystem } from '../volumes/volume-system.ts';

const REPORT = ['--reportformat', 'json', '--units', 'b', '--nosuffix'];
/** Overrides the host's configuration: a volume's content belongs to its guest. */
const NEVER_INSIDE = ['--config', 'devices/scan_lvs=0'];
/** Bytes zeroed between two checks for an interruption. */
const ZERO_STEP_BYTES = 64 * MIB;
/** Zeroing speed of the slowest supported device. */
const MIN_ZEROING_BYTES_PER_MS = 4000;

/** Runs LVM's commands for disks of the template `plain`. */
export function createLvm(commands: BoundCommands = createBoundCommands('LVM')): VolumeSystem {
  const path = ({ group, name }: Named): string => `${group}/${name}`;
  const read = (command: string, ...args: readonly string[]): Promise<string> =>
    orMissing(commands.read('lvm', [command, ...NEVER_INSIDE, ...args]));
  const change = (command: string, ...args: readonly string[]): Promise<string> =>
    orMissing(commands.change('lvm', [command, ...NEVER_INSIDE, ...args]));
  return {
    label: 'LVM volumes',
    roomName: 'volumes',
    errors: lvmErrors,
    placeOf: ({ vg = '', pool }) => ({ group: vg, pool }),
    parsePlace: (place) => {
      const [group = '', pool] = place.split('/');
      return { group, pool };
    },
    pathOf: ({ group, name }) => volumePath(group, name),
    isThere: ({ group, name }) => isBlockDevice(volumePath(group, name)),
    listGroups: async () => parseGroups(await read('vgs', ...REPORT, '-o', GROUP_FIELDS)),
    listVolumes: async () => parseVolumes(await read('lvs', ...REPORT, '-o', VOLUME_FIELDS)),
    isScanned: async () => {
      const type = ['--typeconfig', 'full'];
      const asked = await orMissing(
        commands.read('lvm', ['lvmconfig', ...type, 'devices/scan_lvs']),
      );
      return asked.trim() !== 'scan_lvs=0';
    },
    create: async ({ group, name, sizeBytes, tags, pool = '' }) => {
      // Signatures are wiped before udev sees the device, so that it activates nothing they
      // describe.
      const wiped = ['--wipesignatures', 'y', '--zero', 'y', '--size', `${sizeBytes}b`];
      const thin = ['--type', 'thin', '--thinpool', pool, '--virtualsize', `${sizeBytes}b`];
      const how = ['--yes', '--activate', 'y', ...(pool === '' ? wiped : thin), ...labelsOf(tags)];
      await orFull(group, change('lvcreate', ...how, '--name', name, group));
    },
    clone: async ({ group, name }, { name: made, tags, isActive }) => {
      const active = ['--setactivationskip', 'n', '--activate', isActive ? 'y' : 'n'];
      const how = ['--yes', '--snapshot', ...active, ...labelsOf(tags), '--name', made];
      await orFull(group, change('lvcreate', ...how, path({ group, name })));
    },
    extend: async (volume, sizeBytes) => {
      await orFull(volume.group, change('lvextend', '--size', `${sizeBytes}b`, path(volume)));
    },
    rename: async ({ group, name }, to) => void (await change('lvrename', group, name, to)),
    remove: async (volume) => void (await change('lvremove', '--yes', path(volume))),
    activate: async (volume) => void (await change('lvchange', '--activate', 'y', path(volume))),
    tag: async (volume, what) => {
      const option = 'add' in what ? ['--addtag', what.add] : ['--deltag', what.remove];
      await change('lvchange', ...option, path(volume));
    },
    zero: async ({ group, name }, fromBytes, toBytes) => {
      const device = volumePath(group, name);
      const lengthBytes = toBytes - fromBytes;
      if (lengthBytes <= 0) return;
      const place = ['--offset', `${fromBytes}`, '--length', `${lengthBytes}`];
      // Without `--force` blkdiscard opens the device exclusively, but this daemon already does.
      const how = ['--force', '--zeroout', '--step', `${ZERO_STEP_BYTES}`];
      const moreMs = Math.ceil(lengthBytes / MIN_ZEROING_BYTES_PER_MS);
      const args = [...how, ...place, device];
      await commands.change('blkdiscard', args, { moreMs, isTiedToDaemon: true });
      await syncPath(device);
    },
  };
}

async function isBlockDevice(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isBlockDevice();
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
}

/** LVM's messages when extents, a thin pool or its metadata are full. */
const FULL = /insufficient free|reached threshold|no free space/i;

/** Other failures carry their own message. */
async function orMissing(asked: Promise<string>): Promise<string> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.exitStatus !== NOT_FOUND) throw error;
    throw new AppError('HOST_PREREQUISITE', 'this node has no LVM: the command lvm is missing', {
      hint: 'apt-get install lvm2',
      cause: error,
    });
  }
}

function labelsOf(tags: readonly string[]): readonly string[] {
  return tags.flatMap((tag) => ['--addtag', tag]);
}

async function orFull(group: string, done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!(error instanceof CommandFailed) || !FULL.test(error.stderr)) throw error;
    throw new AppError('DISK_FULL', `the volume group '${group}' has no room for it`, {
      hint: `Remove instances that are not needed, or add a device (vgextend ${group} DEVICE), or enlarge the thin pool (lvextend).`,
      cause: error,
    });
  }
}
