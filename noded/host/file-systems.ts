import { stat, statfs } from 'node:fs/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';

/** Growing folders of a node. */
const PLACES = ['store', 'disks', 'images', 'exports', 'logs'] as const;
export type Place = (typeof PLACES)[number];

export interface PlaceSpace {
  readonly place: Place;
  readonly path: string;
  /** Number of the file system, equal for places that share one. */
  readonly device: number;
  readonly totalBytes: number;
  /** Available to this program. */
  readonly freeBytes: number;
}

type PlacePaths = Pick<
  RootPaths,
  'stateDir' | 'disksDir' | 'imageCacheDir' | 'exportDir' | 'logDir'
>;

/** Measures the free space of each place. Omits missing places. */
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
