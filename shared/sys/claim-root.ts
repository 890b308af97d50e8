import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AppError } from '../errors/app-error.ts';
import type { RootPaths } from '../paths/root-paths.ts';
import { tryLockFile } from './file-locks.ts';

/**
 * Makes this process the only node daemon of its root. Call it before anything else is touched:
 * what a second daemon does at its start (failing interrupted jobs, ending appliances) would hit
 * the first one's work.
 * @returns gives the root back; the end of the process does so too, a `kill -9` included
 * @throws AppError CONFLICT
 */
export function claimRoot(paths: RootPaths): () => void {
  const path = join(paths.runDir, 'noded.lock');
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  // Never removed: who locks a file that is removed meanwhile has locked nothing.
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
