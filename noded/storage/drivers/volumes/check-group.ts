import { requirePool, type ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';
import type { Place, VolumeErrors, VolumeGroup } from './volume-system.ts';

/** A planned or present disk with the place of its volume. */
export interface PlacedDisk extends Place {
  readonly uuid?: string;
  readonly sizeBytes: number;
}

/**
 * Refuses disks that cannot be created or enlarged as requested. A volume owns its extents, unless
 * it is thin. Pure.
 * @throws AppError HOST_PREREQUISITE, VALIDATION, DISK_SPACE
 */
export function checkGroups(
  disks: readonly PlacedDisk[],
  { groups, volumes, pools }: KnownPlaces,
  errors: VolumeErrors,
): void {
  for (const name of new Set(disks.map(({ group }) => group))) {
    const group = requireGroup(name, groups, errors);
    const own = disks.filter((disk) => disk.group === name);
    for (const { sizeBytes } of own)
      // A guest sees the whole volume, which LVM rounds up to full extents. Its size would differ
      // from the record.
      if (sizeBytes % group.extentBytes !== 0) throw errors.oddSize(sizeBytes, group);
    const isMore = (disk: PlacedDisk): boolean => disk.sizeBytes > presentBytes(disk, volumes);
    for (const { pool } of own.filter(isMore))
      if (pool !== undefined) requirePool({ group: name, pool }, pools, errors);
    const neededBytes = own
      .filter(({ pool }) => pool === undefined)
      .reduce((sum, disk) => sum + Math.max(0, disk.sizeBytes - presentBytes(disk, volumes)), 0);
    if (neededBytes > group.freeBytes) throw errors.noRoom(neededBytes, group);
  }
}

export interface KnownPlaces {
  readonly groups: readonly VolumeGroup[];
  readonly volumes: readonly OwnVolume[];
  readonly pools: readonly ThinPool[];
}

/** This node's name, and a check whether a name is this node's. */
export interface Here {
  readonly nodeName: string;
  readonly owns: (node: string) => boolean;
}

/**
 * Refuses a group that two nodes write to, on a storage network or a copied disk. Neither node sees
 * the other's changes, so both would allocate the same extents.
 * @throws AppError CONFLICT
 */
export function refuseForeign(
  names: ReadonlySet<string>,
  volumes: readonly OwnVolume[],
  here: Here,
  errors: VolumeErrors,
): void {
  for (const { group, node, name } of volumes) {
    if (!names.has(group) || node === null || here.owns(node)) continue;
    throw errors.foreign({ group, node, name }, here);
  }
}

/**
 * Refuses a host whose LVM scans inside volumes. It would activate a group that a guest created
 * there as its own.
 * @throws AppError HOST_PREREQUISITE
 */
export function refuseScanned(isScanned: boolean, errors: VolumeErrors): void {
  if (isScanned) throw errors.scanned();
}

/** @throws AppError HOST_PREREQUISITE */
export function requireGroup(
  name: string,
  groups: readonly VolumeGroup[],
  errors: VolumeErrors,
): VolumeGroup {
  const found = groups.find((group) => group.name === name);
  if (found === undefined) throw errors.noGroup(name, groups);
  return found;
}

function presentBytes({ uuid }: PlacedDisk, volumes: readonly OwnVolume[]): number {
  const found = volumes.find(({ disk, state }) => disk === uuid && state.kind === 'disk');
  return found?.sizeBytes ?? 0;
}
