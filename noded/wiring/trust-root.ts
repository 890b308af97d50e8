import type { RootPaths } from '#shared/paths/root-paths.ts';
import { makeTrustedFolder } from '../host/trusted-path.ts';

/**
 * Has to come before anything below the root is opened: a root of somebody else could have a store,
 * OS definitions and keys of theirs. @throws AppError HOST_PREREQUISITE
 */
export async function requireTrustedRoot({ root, runDir, stateDir }: RootPaths): Promise<void> {
  for (const path of [root, runDir, stateDir]) {
    await makeTrustedFolder(path, 'GNT_ROOT');
  }
}
