import { homedir } from 'node:os';
import { join } from 'node:path';
import { chooseAptSources, readAptSources } from '../../../appliance/image/apt-sources.ts';
import { buildAppliance } from '../../../appliance/image/build.ts';

/** Builds the appliance of this tree below a folder. @returns its own folder */
export async function buildTestAppliance(directory: string): Promise<string> {
  const applianceDir = join(directory, 'appliance');
  await buildAppliance({
    applianceDir,
    cacheDir: process.env['GNT_CACHE'] ?? join(homedir(), '.cache/gnt'),
    mirror: { sources: chooseAptSources(readAptSources()), proxyEnvironment: {} },
    nodePath: process.execPath,
    force: false,
    step: () => undefined,
    signal: new AbortController().signal,
  });
  return applianceDir;
}
