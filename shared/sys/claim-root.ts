import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AppError } from '../errors/app-error.ts';
import type { RootPaths } from '../paths/root-paths.ts';
import { tryLockFile } from './file-locks.ts';

/**
 * Makes this process the only node daemon of its root. Call it before all else: the start of a
 * second daemon (failing interrupted jobs, ending appliances) would damage the first one's work.
 * @returns a function that releases the root, as the end of the process does, also by SIGKILL
 * @throws AppError CONFLICT
 */
export function claimRoot(paths: RootPaths): () => void {
  const path = join(paths.runDir, 'noded.lock');
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  // Never removed: a lock on a removed file protects nothing.
  const fd = openSync(path, 'a', 0o600);
  if (!tryLockFile(fd)) {
    closeSync(fd);
    throw new AppError('CONFLICT', `another gnt-noded is running on ${paths.root}`, {
      details: { root: paths.root },
      hint: 'Stop it first, or set GNT_ROOT to another root.',
    });
  }
  return () => closeSync(fd);
}
