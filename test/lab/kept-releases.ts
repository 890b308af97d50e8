import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** What a release has left for those that come after it; fixtures/upgrade/README.md tells how. */
export interface KeptRelease {
  readonly name: string;
  /** What its daemon had written when it was killed. */
  readonly storeFile: string;
  /** Of its programs. */
  readonly commit: string;
}

const FOLDER = join(import.meta.dirname, '../../fixtures/upgrade');
export const RELEASES = join(FOLDER, 'releases');
/** Before there were versions. */
const FIRST: KeptRelease = {
  name: 'the first one',
  storeFile: join(FOLDER, 'store.sqlite'),
  commit: 'a6b930d3346e4a630f0d50b2bcf6565d73c4e4b2',
};

/** @param folder of releases, each in a folder called by its version */
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
