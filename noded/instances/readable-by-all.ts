import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { statHostFile } from '../host/open-host-file.ts';

const OTHERS_MAY_READ = 0o004n;

/**
 * QEMU opens some files by name, as its own user.
 * @throws AppError HOST_PREREQUISITE naming the file
 */
export async function readableByAll(path: string): Promise<void> {
  try {
    const found = await statHostFile(path);
    if (found.isFile() && (found.mode & OTHERS_MAY_READ) !== 0n) return;
  } catch (error) {
    throw new AppError('HOST_PREREQUISITE', `${path}: ${systemCodeOf(error) ?? 'unreadable'}`, {
      hint: 'check the path on the node',
      cause: error,
    });
  }
  throw new AppError(
    'HOST_PREREQUISITE',
    `${path} must be a file that every user may read: QEMU runs unprivileged`,
    {
      hint: `chmod o+r ${path}`,
    },
  );
}
