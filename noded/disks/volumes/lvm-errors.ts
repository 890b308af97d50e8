import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { roomHint } from './thin-pools.ts';
import { nodeTag } from './volume-names.ts';
import type { VolumeErrors } from './volume-system.ts';

export const IN_VOLUMES = 'inside of volumes, where guests write what they like';
export const SCAN_HINT = 'set devices/scan_lvs=0 in /etc/lvm/lvm.conf, as it is by default';

export const lvmErrors: VolumeErrors = {
  noGroup: (name, groups) => {
    const there = groups.map((group) => group.name).join(', ') || 'none';
    return new AppError('HOST_PREREQUISITE', `this node has no volume group '${name}'`, {
      details: { group: name },
      hint: `there are: ${there}; vgcreate ${name} DEVICE makes it, gnt-cluster modify --vg-name names another for new disks`,
    });
  },
  oddSize: (sizeBytes, { name, extentBytes }) => {
    const next = (Math.floor(sizeBytes / extentBytes) + 1) * (extentBytes / MIB);
    return new AppError(
      'VALIDATION',
      `the volume group '${name}' has extents of ${extentBytes / MIB} MiB, and a disk is made of whole ones`,
      { hint: `give ${next} MiB instead of ${Math.ceil(sizeBytes / MIB)}` },
    );
  },
  noRoom: (neededBytes, { name, freeBytes }) => {
    const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.floor(bytes / MIB));
    return new AppError(
      'DISK_SPACE',
      `its disks take ${needed} MiB of the volume group '${name}', and ${free} MiB are free`,
      {
        details: { group: name, neededBytes, freeBytes },
        hint: `volumes are not sparse: remove instances that are not needed, or vgextend ${name} DEVICE`,
      },
    );
  },
  noPool: ({ group, pool: name = '' }, pools) => {
    const path = `${group}/${name}`;
    const there = pools.map((pool) => `${pool.group}/${pool.name}`).join(', ') || 'none';
    return new AppError('HOST_PREREQUISITE', `this node has no thin pool '${path}'`, {
      details: { pool: path },
      hint: `there are: ${there}; lvcreate --type thin-pool --size SIZE --name ${name} ${group} makes it (apt-get install thin-provisioning-tools), gnt-cluster modify --vg-name names another for new disks`,
    });
  },
  leakyPool: ({ group, name }) => {
    const path = `${group}/${name}`;
    return new AppError(
      'HOST_PREREQUISITE',
      `the thin pool '${path}' gives blocks away with what others wrote in them`,
      { details: { pool: path }, hint: `lvchange --zero y ${path}` },
    );
  },
  fullPool: ({ group, name, usedShare, freeBytes }) => {
    const path = `${group}/${name}`;
    return new AppError(
      'DISK_SPACE',
      `the thin pool '${path}' is full to ${Math.floor(usedShare * 100)} %`,
      { details: { pool: path, freeBytes }, hint: roomHint(path) },
    );
  },
  foreign: ({ group, node, name }, { nodeName }) =>
    new AppError(
      'CONFLICT',
      `the volume group '${group}' has volumes of the node ${node}, and this one is ${nodeName}`,
      {
        details: { group, node, volume: name },
        hint: `two nodes that change one group destroy it: give each a group of its own. On a copy of the other's disk vgimportclone makes it another group; where ${node} is gone for good, lvchange --deltag ${nodeTag(node)} ${group} says so`,
      },
    ),
  scanned: () =>
    new AppError('HOST_PREREQUISITE', `LVM of this node looks for groups ${IN_VOLUMES}`, {
      hint: SCAN_HINT,
    }),
  dependents: ({ group, name, dependents }, first) =>
    new AppError(
      'CONFLICT',
      `the volume ${group}/${name} has ${dependents.length} snapshot(s) of LVM that an administrator made: ${first}${dependents.length > 1 ? ', …' : ''}`,
      {
        details: { group, volume: name, snapshots: [...dependents] },
        hint: `LVM removes them with it, and grows none that has some: remove what is not needed (lvremove ${group}/${first}), and do it again`,
      },
    ),
  noDevice: ({ name }, index, path) =>
    new AppError('DISK_MISSING', `disk ${index} of '${name}' is not at ${path}`, {
      details: { path },
      hint: `lvs tells what there is, vgchange --activate y activates it; or gnt-instance reinstall ${name} makes an empty one and installs it`,
    }),
  noSnapshot: (snapshot, index) =>
    new AppError('DISK_MISSING', `disk ${index} of the snapshot '${snapshot}' has no volume`, {
      hint: 'lvs tells what there is; remove the snapshot',
    }),
  notDone: ({ name }, done) =>
    new AppError('NOT_SUPPORTED', `'${name}' has LVM volumes, which are not ${done}`, {
      details: { name },
      hint: `gnt-backup export ${name} keeps what is on them, and imports as an instance with disks of the template file`,
    }),
};
