import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { VolumeErrors } from './volume-system.ts';

export const IN_ZVOLS = 'inside of ZFS volumes, where guests write what they like';
export const FILTER_HINT =
  'set devices/global_filter=["r|^/dev/zd|"] in /etc/lvm/lvm.conf, and no pattern that takes /dev/zvol';

export const zfsErrors: VolumeErrors = {
  noGroup: (name, groups) => {
    const pools = groups.map((group) => group.name).filter((path) => !path.includes('/'));
    return new AppError('HOST_PREREQUISITE', `this node has no ZFS dataset '${name}'`, {
      details: { dataset: name },
      hint: `its pools are: ${pools.join(', ') || 'none'}; ${makeHint(name)} makes it, zpool import brings back a pool, gnt-cluster modify --zfs-pool names another for new disks`,
    });
  },
  oddSize: (sizeBytes, { name }) =>
    new AppError('VALIDATION', `a volume of the ZFS dataset '${name}' is made of whole MiB`, {
      hint: `give ${Math.floor(sizeBytes / MIB) + 1} MiB`,
    }),
  noRoom: (neededBytes, { name, freeBytes }) => full(name, `${mib(freeBytes)} of ${mib(neededBytes)} MiB are free`, freeBytes), // prettier-ignore
  noPool: ({ group }, pools) =>
    zfsErrors.noGroup(
      group,
      pools.map((pool) => ({ ...pool, name: pool.group, uuid: '', extentBytes: MIB })),
    ),
  leakyPool: ({ group }) =>
    new AppError('HOST_PREREQUISITE', `the ZFS dataset '${group}' cannot be used`),
  fullPool: ({ group, usedShare, freeBytes }) =>
    full(group, `it is full to ${Math.floor(usedShare * 100)} %`, freeBytes),
  foreign: ({ group, node, name }, { nodeName }) =>
    new AppError(
      'CONFLICT',
      `the ZFS dataset '${group}' has volumes of the node ${node}, and this one is ${nodeName}`,
      {
        details: { dataset: group, node, volume: name },
        hint: `two nodes that write to one pool destroy it: give each a pool of its own. Where ${node} is gone for good, zfs inherit gnt:node of each volume in ${group} says so`,
      },
    ),
  scanned: () =>
    new AppError('HOST_PREREQUISITE', `LVM of this node looks for groups ${IN_ZVOLS}`, {
      hint: FILTER_HINT,
    }),
  dependents: ({ group, name, dependents }, first) =>
    new AppError(
      'CONFLICT',
      `the volume ${group}/${name} has ${dependents.length} snapshot(s) of ZFS that an administrator made: ${first}${dependents.length > 1 ? ', …' : ''}`,
      {
        details: { dataset: group, volume: name, snapshots: [...dependents] },
        hint: `they would go with it: remove what is not needed (zfs destroy ${group}/${first}), and do it again`,
      },
    ),
  noDevice: ({ name }, index, path) =>
    new AppError('DISK_MISSING', `disk ${index} of '${name}' is not at ${path}`, {
      details: { path },
      hint: `zfs list -t volume tells what there is, udevadm trigger makes names anew; or gnt-instance reinstall ${name} makes an empty one and installs it`,
    }),
  noSnapshot: (snapshot, index) =>
    new AppError('DISK_MISSING', `disk ${index} of the snapshot '${snapshot}' has no volume`, {
      hint: 'zfs list -t volume tells what there is; remove the snapshot',
    }),
  notDone: ({ name }, done) =>
    new AppError('NOT_SUPPORTED', `'${name}' has ZFS volumes, which are not ${done}`, {
      details: { name },
      hint: `gnt-backup export ${name} keeps what is on them, and imports as an instance with disks of the template file`,
    }),
};

export function datasetRoomHint(dataset: string): string {
  return `remove instances or snapshots that are not needed, or zpool add a device to the pool of ${dataset} (zfs list -o space ${dataset} tells what takes it, zfs get quota whether that is all it may)`;
}

/** What an administrator types to have a dataset, or a pool. */
export function makeHint(name: string): string {
  return name.includes('/') ? `zfs create -o mountpoint=none ${name}` : `zpool create ${name} DEVICE`; // prettier-ignore
}

function full(dataset: string, why: string, freeBytes: number): AppError {
  return new AppError('DISK_SPACE', `the ZFS dataset '${dataset}' has no room: ${why}`, {
    details: { dataset, freeBytes },
    hint: datasetRoomHint(dataset),
  });
}

function mib(bytes: number): number {
  return Math.floor(bytes / MIB);
}
