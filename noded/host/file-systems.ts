import { stat, statfs } from 'node:fs/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';

/** What a node keeps that grows. */
const PLACES = ['store', 'disks', 'images', 'exports', 'logs'] as const;
export type Place = (typeof PLACES)[number];

export interface PlaceSpace {
  readonly place: Place;
  readonly path: string;
  /** Number of the file system; places on one have the same. */
  readonly device: number;
  readonly totalBytes: number;
  /** What this program may still write. */
  readonly freeBytes: number;
}

type PlacePaths = Pick<
  RootPaths,
  'stateDir' | 'disksDir' | 'imageCacheDir' | 'exportDir' | 'logDir'
>;

/**
 * Measures what is free where this node writes, by place; a place that is not there is left out.
 */
export async function measurePlaces(paths: PlacePaths): Promise<readonly PlaceSpace[]> {
  const pathOf: Readonly<Record<Place, string>> = {
    store: paths.stateDir,
    disks: paths.disksDir,
    images: paths.imageCacheDir,
    exports: paths.exportDir,
    logs: paths.logDir,
  };
  const found = await Promise.all(PLACES.map((place) => measurePlace(place, pathOf[place])));
  return found.flatMap((one) => one ?? []);
}

async function measurePlace(place: Place, path: string): Promise<PlaceSpace | null> {
  try {
    const [{ dev: device }, { bavail, blocks, bsize }] = await Promise.all([
      stat(path),
      statfs(path),
    ]);
    return { place, path, device, totalBytes: blocks * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
