import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** What a file system says that cannot share blocks between these two files. */
const NO_CLONES = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOSYS', 'ENOTTY'];

/**
 * Makes a new file of the blocks of another one.
 * @returns false where blocks cannot be shared; nothing is there then
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
