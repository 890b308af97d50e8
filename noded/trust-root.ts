import type { RootPaths } from '#shared/paths/root-paths.ts';
import { makeTrustedFolder } from './host/trusted-path.ts';

/**
 * Before anything below the root is opened: with it could come a store, OS definitions and keys of
 * somebody else. @throws AppError HOST_PREREQUISITE
 */
export async function requireTrustedRoot({ root, runDir, stateDir }: RootPaths): Promise<void> {
  for (const path of [root, runDir, stateDir]) {
    await makeTrustedFolder(path, 'GNT_ROOT');
  }
}
