import { DEFAULT_LOW_SPACE_PERCENT } from '#shared/contract/cluster-settings.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import type { PlaceSpace } from './file-systems.ts';

export const SPACE_HINT =
  'Remove instances, snapshots, exports or images that are not needed, or enlarge the file system.';

/** A file system with the places on it. */
interface Shared extends Omit<PlaceSpace, 'place' | 'device'> {
  readonly places: readonly PlaceSpace['place'][];
}

/**
 * Returns file systems with less free space than `percent`.
 * @param percent 0 disables the warning
 */
export function findLowSpace(
  places: readonly PlaceSpace[],
  percent: number = DEFAULT_LOW_SPACE_PERCENT,
): readonly Shared[] {
  return groupPlaces(places).filter(
    ({ freeBytes, totalBytes }) => freeBytes * 100 < totalBytes * percent,
  );
}

/** Groups places by file system. */
export function groupPlaces(places: readonly PlaceSpace[]): readonly Shared[] {
  return [...Map.groupBy(places, ({ device }) => device).values()].flatMap((all) => {
    const [first] = all;
    return first === undefined ? [] : [{ ...first, places: all.map(({ place }) => place) }];
  });
}

/** Example: `3.1 GiB of 40.0 GiB are free below /var/lib/gnt (store, disks)` */
export function describeSpace({ freeBytes, totalBytes, path, places }: Shared): string {
  return `${inUnits(freeBytes)} of ${inUnits(totalBytes)} free below ${path} (${places.join(', ')})`;
}

export interface PromisedSpace {
  readonly instances: number;
  /** Maximum size of their disks with snapshots. Sparse files grow when written. */
  readonly promisedBytes: number;
  /** Size of the file system of the disks. */
  readonly totalBytes: number;
}

export function isOverpromised({ promisedBytes, totalBytes }: PromisedSpace): boolean {
  return promisedBytes > totalBytes;
}

export function describePromise({ instances, promisedBytes, totalBytes }: PromisedSpace): string {
  return `disks of ${instances} instance(s) can grow to ${inUnits(promisedBytes)} on a file system of ${inUnits(totalBytes)}`;
}

function inUnits(bytes: number): string {
  return bytes < GIB ? `${(bytes / MIB).toFixed(0)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;
}
