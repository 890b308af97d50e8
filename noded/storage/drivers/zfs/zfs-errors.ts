import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { VolumeErrors } from '../volumes/volume-system.ts';

export const IN_ZVOLS = 'inside ZFS volumes, where guests can write arbitrary data';
export const FILTER_HINT =
  'Set devices/global_filter=["r|^/dev/zd|"] in /etc/lvm/lvm.conf, without a pattern that accepts /dev/zvol.';

export const zfsErrors: VolumeErrors = {
  noGroup: (name, groups) => {
    const pools = groups.map((group) => group.name).filter((path) => !path.includes('/'));
    return new AppError('HOST_PREREQUISITE', `this node has no ZFS dataset '${name}'`, {
      details: { dataset: name },
      hint: `Its pools are: ${pools.join(', ') || 'none'}. Create the dataset (${makeHint(name)}), import its pool (zpool import), or use another for new disks: gnt-cluster modify --zfs-pool DATASET`,
    });
  },
  oddSize: (sizeBytes, { name }) =>
    new AppError(
      'VALIDATION',
      `a volume in the ZFS dataset '${name}' must have a size in whole MiB`,
      {
        hint: `Use ${Math.floor(sizeBytes / MIB) + 1} MiB.`,
      },
    ),
  noRoom: (neededBytes, { name, freeBytes }) => full(name, `${mib(neededBytes)} MiB needed, ${mib(freeBytes)} MiB free`, freeBytes), // prettier-ignore
  noPool: ({ group }, pools) =>
    zfsErrors.noGroup(
      group,
      pools.map((pool) => ({ ...pool, name: pool.group, uuid: '', extentBytes: MIB })),
    ),
  leakyPool: ({ group }) =>
    new AppError('HOST_PREREQUISITE', `the ZFS dataset '${group}' cannot be used`),
  fullPool: ({ group, usedShare, freeBytes }) =>
    full(group, `it is ${Math.floor(usedShare * 100)} % full`, freeBytes),
  foreign: ({ group, node, name }, { nodeName }) =>
    new AppError(
      'CONFLICT',
      `the ZFS dataset '${group}' has volumes of the node ${node}; this node is ${nodeName}`,
      {
        details: { dataset: group, node, volume: name },
        hint: `Two nodes that write to one pool destroy it: give each node a pool of its own. If ${node} is gone for good, run zfs inherit gnt:node on each volume in ${group}.`,
      },
    ),
  scanned: () =>
    new AppError('HOST_PREREQUISITE', `LVM on this node searches for volume groups ${IN_ZVOLS}`, {
      hint: FILTER_HINT,
    }),
  dependents: ({ group, name, dependents }, first) =>
    new AppError(
      'CONFLICT',
      `the volume ${group}/${name} has ${dependents.length} ZFS snapshot(s) made by an administrator: ${first}${dependents.length > 1 ? ', …' : ''}`,
      {
        details: { dataset: group, volume: name, snapshots: [...dependents] },
        hint: `They would be removed together with it. Remove them first: zfs destroy ${group}/${first}`,
      },
    ),
  noDevice: ({ name }, index, path) =>
    new AppError('DISK_MISSING', `disk ${index} of '${name}' is missing at ${path}`, {
      details: { path },
      hint: `List volumes with zfs list -t volume and restore device names with udevadm trigger. Or install a new, empty disk: gnt-instance reinstall ${name}`,
    }),
  noSnapshot: (snapshot, index) =>
    new AppError('DISK_MISSING', `disk ${index} of the snapshot '${snapshot}' has no volume`, {
      hint: 'List volumes with zfs list -t volume. Remove the snapshot.',
    }),
};

export function datasetRoomHint(dataset: string): string {
  return `Remove instances or snapshots that are not needed, or add a device to the pool of ${dataset} (zpool add). Show usage: zfs list -o space ${dataset}; show a quota: zfs get quota ${dataset}`;
}

/** Returns the command that creates a dataset or a pool. */
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
