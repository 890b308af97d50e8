import type { InstanceDisk } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { datasetRoomHint } from '../zfs/zfs-errors.ts';
import type { Place, Volume, VolumeErrors } from './volume-system.ts';

/** What many volumes take their blocks from when something is written to them (lvmthin(7)). */
export interface ThinPool {
  readonly group: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly freeBytes: number;
  /** How full its data or what LVM notes down of them is, whichever is fuller: from 0 to 1. */
  readonly usedShare: number;
  /** A block that it gives away holds zeros, not what a former tenant wrote. */
  readonly isZeroing: boolean;
}

/** Room that a pool needs for new volumes, and for guests that stood still to go on. */
export const FULL_SHARE = 0.95;

/** Pure. One that is not active tells nothing of what is free, and has nothing to give. */
export function findPools(volumes: readonly Volume[]): readonly ThinPool[] {
  return volumes
    .filter(({ isPool }) => isPool)
    .map(({ group, name, sizeBytes, usedShare, dataShare, isZeroing }) => ({
      ...{ group, name, sizeBytes, isZeroing, usedShare: usedShare ?? 1 },
      freeBytes: Math.floor(sizeBytes * (1 - (dataShare ?? 1))),
    }));
}

/**
 * A pool that new volumes can be made in. Pure.
 * @throws AppError HOST_PREREQUISITE, DISK_SPACE
 */
export function requirePool(
  place: Place,
  pools: readonly ThinPool[],
  errors: VolumeErrors,
): ThinPool {
  const found = pools.find(({ group, name }) => group === place.group && name === place.pool);
  if (found === undefined) throw errors.noPool(place, pools);
  if (!found.isZeroing) throw errors.leakyPool(found);
  if (found.usedShare >= FULL_SHARE) throw errors.fullPool(found);
  return found;
}

export function roomHint(path: string): string {
  return `Remove instances or snapshots that are not needed, or enlarge the pool: lvextend --size +10g ${path} (metadata: --poolmetadatasize; lvs ${path} shows both)`;
}

/** Where the blocks of thin disks come from. */
export interface BlockSource {
  /** Its kind and its name, for a message. */
  readonly name: string;
  /** How it gets room. */
  readonly hint: string;
}

/** Thin pools and ZFS datasets, each once. Pure. */
export function poolsOf(
  disks: readonly Pick<InstanceDisk, 'vg' | 'pool' | 'dataset'>[],
): readonly BlockSource[] {
  const thin = new Set(disks.flatMap(({ vg, pool }) => (pool === undefined ? [] : [`${vg}/${pool}`]))); // prettier-ignore
  const datasets = new Set(disks.flatMap(({ dataset }) => dataset ?? []));
  return [
    ...[...thin].map((path) => ({ name: `thin pool ${path}`, hint: roomHint(path) })),
    ...[...datasets].map((path) => ({ name: `ZFS dataset ${path}`, hint: datasetRoomHint(path) })),
  ];
}

/** What a disk takes of a pool that holds its like already, at least. */
export function neededInPool(
  disks: readonly Pick<InstanceDisk, 'sizeBytes' | 'uuid'>[],
  volumes: readonly Pick<Volume, 'name' | 'sizeBytes' | 'dataShare'>[],
  imageBytes: number,
): number {
  const all = disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const taken = volumes.reduce((sum, one) => sum + one.sizeBytes * (one.dataShare ?? 0), 0);
  return Math.min(all, Math.max(Math.ceil(taken), imageBytes, MIB));
}
