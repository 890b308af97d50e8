import type { InstanceDisk } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { VolumeGroup } from './lvm.ts';
import { requirePool, type ThinPool } from './thin-pools.ts';
import { nodeTag, type OwnVolume } from './volume-names.ts';

export type WantedDisk = Pick<InstanceDisk, 'sizeBytes'> & Partial<InstanceDisk>;

/**
 * Whether disks can be made, or made larger, as they are wanted: what a volume has, nobody else has,
 * unless it is thin. Pure.
 * @throws AppError HOST_PREREQUISITE, VALIDATION, DISK_SPACE
 */
export function checkGroups(
  disks: readonly WantedDisk[],
  groups: readonly VolumeGroup[],
  volumes: readonly OwnVolume[],
  pools: readonly ThinPool[],
): void {
  for (const name of new Set(disks.map(({ vg }) => vg ?? ''))) {
    const group = requireGroup(name, groups);
    const own = disks.filter(({ vg }) => (vg ?? '') === name);
    for (const { sizeBytes } of own) refuseOddSize(sizeBytes, group);
    const isMore = (disk: WantedDisk): boolean => disk.sizeBytes > presentBytes(disk, volumes);
    for (const { pool } of own.filter(isMore))
      if (pool !== undefined) requirePool(name, pool, pools);
    const neededBytes = own
      .filter(({ pool }) => pool === undefined)
      .reduce((sum, disk) => sum + Math.max(0, disk.sizeBytes - presentBytes(disk, volumes)), 0);
    if (neededBytes > group.freeBytes) throw noRoom(neededBytes, group);
  }
}

/** Which node this one is, and whether a node is this one by another name. */
export interface Here {
  readonly nodeName: string;
  readonly owns: (node: string) => boolean;
}

/**
 * Refuses a group that two nodes write to, on a disk of a storage network or on a copied one: what
 * one of them changes the other does not know, and gives the same extents to somebody else.
 * @throws AppError CONFLICT
 */
export function refuseForeign(
  names: ReadonlySet<string>,
  volumes: readonly OwnVolume[],
  { nodeName, owns }: Here,
): void {
  for (const { group, node, name } of volumes) {
    if (!names.has(group) || node === null || owns(node)) continue;
    throw new AppError(
      'CONFLICT',
      `the volume group '${group}' has volumes of the node ${node}, and this one is ${nodeName}`,
      {
        details: { group, node, volume: name },
        hint: `two nodes that change one group destroy it: give each a group of its own. On a copy of the other's disk vgimportclone makes it another group; where ${node} is gone for good, lvchange --deltag ${nodeTag(node)} ${group} says so`,
      },
    );
  }
}

/**
 * Refuses a host whose LVM looks into volumes: a guest could write a group there that this host
 * brings to life as its own.
 * @throws AppError HOST_PREREQUISITE
 */
export function refuseScanned(isScanned: boolean): void {
  if (!isScanned) return;
  throw new AppError('HOST_PREREQUISITE', `LVM of this node looks for groups ${IN_VOLUMES}`, {
    hint: SCAN_HINT,
  });
}

export const IN_VOLUMES = 'inside of volumes, where guests write what they like';
export const SCAN_HINT = 'set devices/scan_lvs=0 in /etc/lvm/lvm.conf, as it is by default';

/** @throws AppError HOST_PREREQUISITE */
export function requireGroup(name: string, groups: readonly VolumeGroup[]): VolumeGroup {
  const found = groups.find((group) => group.name === name);
  if (found !== undefined) return found;
  const there = groups.map((group) => group.name).join(', ') || 'none';
  throw new AppError('HOST_PREREQUISITE', `this node has no volume group '${name}'`, {
    details: { group: name },
    hint: `there are: ${there}; vgcreate ${name} DEVICE makes it, gnt-cluster modify --vg-name names another for new disks`,
  });
}

function presentBytes({ uuid }: WantedDisk, volumes: readonly OwnVolume[]): number {
  const found = volumes.find(({ disk, state }) => disk === uuid && state.kind === 'disk');
  return found?.sizeBytes ?? 0;
}

/** A guest sees all of a volume: one that is larger than its record says would be of two sizes. */
function refuseOddSize(sizeBytes: number, { name, extentBytes }: VolumeGroup): void {
  const rest = sizeBytes % extentBytes;
  if (rest === 0) return;
  const next = (sizeBytes - rest + extentBytes) / MIB;
  throw new AppError(
    'VALIDATION',
    `the volume group '${name}' has extents of ${extentBytes / MIB} MiB, and a disk is made of whole ones`,
    { hint: `give ${next} MiB instead of ${Math.ceil(sizeBytes / MIB)}` },
  );
}

function noRoom(neededBytes: number, { name, freeBytes }: VolumeGroup): AppError {
  const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.floor(bytes / MIB));
  return new AppError(
    'DISK_SPACE',
    `its disks take ${needed} MiB of the volume group '${name}', and ${free} MiB are free`,
    {
      details: { group: name, neededBytes, freeBytes },
      hint: `volumes are not sparse: remove instances that are not needed, or vgextend ${name} DEVICE`,
    },
  );
}
