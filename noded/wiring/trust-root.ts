import type { RootPaths } from '#shared/paths/root-paths.ts';
import { makeTrustedFolder } from '../host/trusted-path.ts';

/**
 * Refuses a root that other users can write to. Must run before any file below is opened: such a
 * root could contain another user's store, OS definitions and keys.
 * @throws AppError HOST_PREREQUISITE
 */
export async function requireTrustedRoot({ root, runDir, stateDir }: RootPaths): Promise<void> {
  for (const path of [root, runDir, stateDir]) {
    await makeTrustedFolder(path, 'GNT_ROOT');
  }
}
