import type { BigIntStats } from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { statHostFile } from '../host/open-host-file.ts';

const OTHERS_MAY_READ = 0o004n;

/**
 * QEMU opens some files by name, as its own user.
 * @throws AppError HOST_PREREQUISITE naming the file
 */
export async function readableByAll(path: string): Promise<void> {
  const found = await find(path);
  if (found.isFile() && (found.mode & OTHERS_MAY_READ) !== 0n) return;
  throw new AppError(
    'HOST_PREREQUISITE',
    `${path} must be a file that every user may read: QEMU runs unprivileged`,
    {
      hint: `chmod o+r ${path}`,
    },
  );
}

/**
 * A cdrom, which QEMU is given open: a file, or a drive of the host.
 * @throws AppError HOST_PREREQUISITE naming it
 */
export async function checkMediumFile(path: string): Promise<void> {
  const found = await find(path);
  if (found.isFile() || found.isBlockDevice()) return;
  throw new AppError('HOST_PREREQUISITE', `${path} is neither a file nor a drive`);
}

async function find(path: string): Promise<BigIntStats> {
  try {
    return await statHostFile(path);
  } catch (error) {
    throw new AppError('HOST_PREREQUISITE', `${path}: ${systemCodeOf(error) ?? 'unreadable'}`, {
      hint: 'check the path on the node',
      cause: error,
    });
  }
}
