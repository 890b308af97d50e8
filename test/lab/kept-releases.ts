import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** Files of a release for upgrade tests of later ones; see fixtures/upgrade/README.md. */
export interface KeptRelease {
  readonly name: string;
  /** Store of its daemon after a kill. */
  readonly storeFile: string;
  /** Commit of its programs. */
  readonly commit: string;
}

const FOLDER = join(import.meta.dirname, '../../fixtures/upgrade');
export const RELEASES = join(FOLDER, 'releases');
/** Precedes version numbers. */
const FIRST: KeptRelease = {
  name: 'the first one',
  storeFile: join(FOLDER, 'store.sqlite'),
  commit: 'a6b930d3346e4a630f0d50b2bcf6565d73c4e4b2',
};

/** @param folder of releases, each in a folder named after its version */
export function findReleases(folder = RELEASES): readonly KeptRelease[] {
  const kept = listVersions(folder).map((version) => ({
    name: version,
    storeFile: join(folder, version, 'store.sqlite'),
    commit: readFileSync(join(folder, version, 'commit'), 'utf8').trim(),
  }));
  return [FIRST, ...kept];
}

function listVersions(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
