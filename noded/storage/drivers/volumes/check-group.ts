import { requirePool, type ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';
import type { Place, VolumeErrors, VolumeGroup } from './volume-system.ts';

/** A disk that is to be, or is already, where its volume is. */
export interface PlacedDisk extends Place {
  readonly uuid?: string;
  readonly sizeBytes: number;
}

/**
 * Whether disks can be made, or made larger, as they are wanted: what a volume has, nobody else
 * has, unless it is thin. Pure.
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
      // A guest sees all of a volume: one that is larger than its record says would be of two
      // sizes.
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

/** What there is on this node. */
export interface KnownPlaces {
  readonly groups: readonly VolumeGroup[];
  readonly volumes: readonly OwnVolume[];
  readonly pools: readonly ThinPool[];
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
  here: Here,
  errors: VolumeErrors,
): void {
  for (const { group, node, name } of volumes) {
    if (!names.has(group) || node === null || here.owns(node)) continue;
    throw errors.foreign({ group, node, name }, here);
  }
}

/**
 * Refuses a host whose LVM looks into volumes: a guest could write a group there that this host
 * brings to life as its own.
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
