import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** Errors of file systems that cannot share blocks between these two files. */
const NO_CLONES = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOSYS', 'ENOTTY'];

/**
 * Creates a file that shares the blocks of another.
 * @returns false if the file system cannot; no file remains
 * @throws the system's error: EEXIST, ENOSPC
 */
export async function shareBlocks(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if (!NO_CLONES.includes(systemCodeOf(error) ?? '')) throw error;
    await rm(to, { force: true });
    return false;
  }
}
