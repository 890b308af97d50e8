import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/**
 * Opens a regular file for reading. The check applies to the opened file, and a FIFO does not
 * block. The caller closes it.
 * @throws Error with `code` of the system: ELOOP for a link that may not be followed, EINVAL for
 * anything but a regular file
 */
export async function openRegular(
  path: string,
  { followLinks }: { readonly followLinks: boolean },
): Promise<{ readonly file: FileHandle; readonly stat: Stats }> {
  const noFollow = followLinks ? 0 : constants.O_NOFOLLOW;
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | noFollow);
  try {
    const stat = await file.stat();
    if (stat.isFile()) return { file, stat };
    throw Object.assign(new Error(`${path} is not a regular file`), { code: 'EINVAL' });
  } catch (error) {
    await file.close();
    throw error;
  }
}
