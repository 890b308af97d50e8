import { AppError, systemCodeOf } from './app-error.ts';

/** Node's codes for a full file system and for an exhausted quota. */
const FULL = ['ENOSPC', 'EDQUOT'];

/** Returns DISK_FULL for a system error of a full disk, and other errors unchanged. */
export function nameDiskFull(error: unknown): unknown {
  if (!(error instanceof Error) || !FULL.includes(systemCodeOf(error) ?? '')) return error;
  return new AppError('DISK_FULL', `the node's disk is full: ${error.message}`, {
    hint: 'Free space on the file system of that path, then repeat the operation.',
    cause: error,
  });
}
