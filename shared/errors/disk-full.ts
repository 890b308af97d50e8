import { AppError, systemCodeOf } from './app-error.ts';

/** The system's word for a file system, or a user's part of it, that takes nothing more. */
const FULL = ['ENOSPC', 'EDQUOT'];

/** What the system says of a full disk, under its public name; everything else as it is. */
export function nameDiskFull(error: unknown): unknown {
  if (!(error instanceof Error) || !FULL.includes(systemCodeOf(error) ?? '')) return error;
  return new AppError('DISK_FULL', `the node's disk is full: ${error.message}`, {
    hint: 'Free space on the file system of that path, then repeat the operation.',
    cause: error,
  });
}
