import type { InstanceDisk } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { datasetRoomHint } from '../zfs/zfs-errors.ts';
import type { Place, Volume, VolumeErrors } from './volume-system.ts';

/** A pool whose thin volumes allocate blocks on the first write (lvmthin(7)). */
export interface ThinPool {
  readonly group: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly freeBytes: number;
  /** The fuller of its data and metadata, from 0 to 1. */
  readonly usedShare: number;
  /** Newly allocated blocks hold zeros, not a former tenant's data. */
  readonly isZeroing: boolean;
}

/** Leaves room for new volumes and for resuming paused guests. */
export const FULL_SHARE = 0.95;

/** Returns the thin pools. An inactive pool reports no usage and counts as full. Pure. */
export function findPools(volumes: readonly Volume[]): readonly ThinPool[] {
  return volumes
    .filter(({ isPool }) => isPool)
    .map(({ group, name, sizeBytes, usedShare, dataShare, isZeroing }) => ({
      ...{ group, name, sizeBytes, isZeroing, usedShare: usedShare ?? 1 },
      freeBytes: Math.floor(sizeBytes * (1 - (dataShare ?? 1))),
    }));
}

/**
 * Returns a pool that can hold new volumes. Pure.
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

/** The pool or dataset that a thin disk allocates blocks from. */
export interface BlockSource {
  /** Its kind and its name, for messages. */
  readonly name: string;
  /** How an operator adds room. */
  readonly hint: string;
}

/** Returns the thin pools and ZFS datasets of disks, without duplicates. Pure. */
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

/** Returns the least bytes that new disks need in a pool, from the usage of the present ones. */
export function neededInPool(
  disks: readonly Pick<InstanceDisk, 'sizeBytes' | 'uuid'>[],
  volumes: readonly Pick<Volume, 'name' | 'sizeBytes' | 'dataShare'>[],
  imageBytes: number,
): number {
  const all = disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const taken = volumes.reduce((sum, one) => sum + one.sizeBytes * (one.dataShare ?? 0), 0);
  return Math.min(all, Math.max(Math.ceil(taken), imageBytes, MIB));
}
