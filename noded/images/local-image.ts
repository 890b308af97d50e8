import { constants, type BigIntStats } from 'node:fs';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { openHostFile, statHostFile } from '../host/open-host-file.ts';

/** A file used where it is, and what tells whether it is still the same. */
export interface LocalImage {
  readonly path: string;
  readonly sizeBytes: number;
  /** @throws AppError IMAGE_UNREADABLE */
  verifyUnchanged(): Promise<void>;
}

/**
 * Opens the file once, to know that it can be read.
 * @throws AppError IMAGE_NOT_FOUND, IMAGE_UNREADABLE
 */
export async function openLocalImage(path: string): Promise<LocalImage> {
  const before = await inspect(path);
  return {
    path,
    sizeBytes: Number(before.size),
    async verifyUnchanged() {
      const now = await statOrNull(path);
      const isSame =
        now !== null &&
        (['dev', 'ino', 'size', 'mtimeNs'] as const).every((field) => now[field] === before[field]);
      if (isSame) return;
      throw unreadable(
        path,
        'it was changed or replaced while it was used',
        'leave it alone, then reinstall',
      );
    },
  };
}

async function inspect(path: string): Promise<BigIntStats> {
  let file;
  try {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    file = await openHostFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw openFailure(path, error);
  }
  try {
    const found = await file.stat({ bigint: true });
    if (found.isDirectory()) throw unreadable(path, 'it is a directory', 'give the file in it');
    if (!found.isFile()) throw unreadable(path, 'it is not a regular file', 'give a file');
    if (found.size === 0n) throw unreadable(path, 'it is empty', 'check how it was made');
    return found;
  } finally {
    await file.close();
  }
}

function openFailure(path: string, error: unknown): AppError {
  if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) {
    return new AppError('IMAGE_NOT_FOUND', `Image '${path}' not found`, {
      details: { path },
      hint: 'check the path; it is looked up on the node, not where the command runs',
      cause: error,
    });
  }
  return unreadable(path, messageOf(error), 'check its permissions', error);
}

async function statOrNull(path: string): Promise<BigIntStats | null> {
  try {
    return await statHostFile(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return null;
    throw openFailure(path, error);
  }
}

function unreadable(path: string, reason: string, hint: string, cause?: unknown): AppError {
  return new AppError('IMAGE_UNREADABLE', `image ${path} cannot be used: ${reason}`, {
    details: { path },
    hint,
    cause,
  });
}
