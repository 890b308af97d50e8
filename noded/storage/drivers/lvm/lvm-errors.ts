import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { roomHint } from '../volumes/thin-pools.ts';
import { nodeTag } from '../volumes/volume-names.ts';
import type { VolumeErrors } from '../volumes/volume-system.ts';

export const IN_VOLUMES = 'inside volumes, where guests can write arbitrary data';
export const SCAN_HINT = "Set devices/scan_lvs=0 in /etc/lvm/lvm.conf (LVM's default).";

export const lvmErrors: VolumeErrors = {
  noGroup: (name, groups) => {
    const there = groups.map((group) => group.name).join(', ') || 'none';
    return new AppError('HOST_PREREQUISITE', `this node has no volume group '${name}'`, {
      details: { group: name },
      hint: `It has: ${there}. Create the group (vgcreate ${name} DEVICE), or use another for new disks: gnt-cluster modify --vg-name GROUP`,
    });
  },
  oddSize: (sizeBytes, { name, extentBytes }) => {
    const next = (Math.floor(sizeBytes / extentBytes) + 1) * (extentBytes / MIB);
    return new AppError(
      'VALIDATION',
      `the volume group '${name}' allocates extents of ${extentBytes / MIB} MiB, and the disk size is not a multiple`,
      { hint: `Use ${next} MiB instead of ${Math.ceil(sizeBytes / MIB)} MiB.` },
    );
  },
  noRoom: (neededBytes, { name, freeBytes }) => {
    const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.floor(bytes / MIB));
    return new AppError(
      'DISK_SPACE',
      `the disks need ${needed} MiB, the volume group '${name}' has ${free} MiB free`,
      {
        details: { group: name, neededBytes, freeBytes },
        hint: `Volumes are not sparse. Remove instances that are not needed, or add a device: vgextend ${name} DEVICE`,
      },
    );
  },
  noPool: ({ group, pool: name = '' }, pools) => {
    const path = `${group}/${name}`;
    const there = pools.map((pool) => `${pool.group}/${pool.name}`).join(', ') || 'none';
    return new AppError('HOST_PREREQUISITE', `this node has no thin pool '${path}'`, {
      details: { pool: path },
      hint: `It has: ${there}. Create the pool (lvcreate --type thin-pool --size SIZE --name ${name} ${group}, package thin-provisioning-tools), or use another: gnt-cluster modify --vg-name GROUP/POOL`,
    });
  },
  leakyPool: ({ group, name }) => {
    const path = `${group}/${name}`;
    return new AppError(
      'HOST_PREREQUISITE',
      `the thin pool '${path}' does not zero its blocks: a new disk would show data of earlier disks`,
      { details: { pool: path }, hint: `lvchange --zero y ${path}` },
    );
  },
  fullPool: ({ group, name, usedShare, freeBytes }) => {
    const path = `${group}/${name}`;
    return new AppError(
      'DISK_SPACE',
      `the thin pool '${path}' is ${Math.floor(usedShare * 100)} % full`,
      { details: { pool: path, freeBytes }, hint: roomHint(path) },
    );
  },
  foreign: ({ group, node, name }, { nodeName }) =>
    new AppError(
      'CONFLICT',
      `the volume group '${group}' has volumes of the node ${node}; this node is ${nodeName}`,
      {
        details: { group, node, volume: name },
        hint: `Two nodes that write to one group destroy it: give each node a group of its own. Rename a copied group with vgimportclone. If ${node} is gone for good: lvchange --deltag ${nodeTag(node)} ${group}`,
      },
    ),
  scanned: () =>
    new AppError('HOST_PREREQUISITE', `LVM on this node searches for volume groups ${IN_VOLUMES}`, {
      hint: SCAN_HINT,
    }),
  dependents: ({ group, name, dependents }, first) =>
    new AppError(
      'CONFLICT',
      `the volume ${group}/${name} has ${dependents.length} LVM snapshot(s) made by an administrator: ${first}${dependents.length > 1 ? ', …' : ''}`,
      {
        details: { group, volume: name, snapshots: [...dependents] },
        hint: `LVM would remove them together with the volume, and cannot grow it. Remove the snapshots first: lvremove ${group}/${first}`,
      },
    ),
  noDevice: ({ name }, index, path) =>
    new AppError('DISK_MISSING', `disk ${index} of '${name}' is missing at ${path}`, {
      details: { path },
      hint: `List volumes with lvs and activate them with vgchange --activate y. Or install a new, empty disk: gnt-instance reinstall ${name}`,
    }),
  noSnapshot: (snapshot, index) =>
    new AppError('DISK_MISSING', `disk ${index} of the snapshot '${snapshot}' has no volume`, {
      hint: 'List volumes with lvs. Remove the snapshot.',
    }),
};
