import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { isSameFile, pinFile, type PinnedFile } from '../../host/pinned-file.ts';

/**
 * A file that is used in place, with a check that it is unchanged.
 * Opens the file until it is released.
 * @throws AppError IMAGE_NOT_FOUND, IMAGE_UNREADABLE
 */
export async function openLocalImage(path: string) {
  const file = await openChecked(path);
  let isReleased = false;
  return {
    /** Path of the open descriptor, so that a replaced file has no effect. */
    path: file.path,
    sizeBytes: Number(file.found.size),
    /** @throws AppError IMAGE_UNREADABLE */
    async verifyUnchanged(): Promise<void> {
      if (isSameFile(await file.handle.stat({ bigint: true }), file.found)) return;
      throw unreadable(
        path,
        'it changed while it was used',
        'Leave the file unchanged, and reinstall.',
      );
    },
    release(): void {
      if (isReleased) return;
      isReleased = true;
      // The file was only read, so that closing cannot lose data.
      file.handle.close().catch(() => undefined);
    },
  };
}

async function openChecked(path: string): Promise<PinnedFile> {
  let file: PinnedFile;
  try {
    file = await pinFile(path, 'followed');
  } catch (error) {
    throw openFailure(path, error);
  }
  if (file.found.size > 0n) return file;
  await file.handle.close();
  throw unreadable(path, 'it is empty', 'Check how the image was made.');
}

function openFailure(path: string, error: unknown): AppError {
  if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) {
    return new AppError('IMAGE_NOT_FOUND', `Image '${path}' not found`, {
      details: { path },
      hint: "Check the path. It is looked up on the node, not on the client's host.",
      cause: error,
    });
  }
  return unreadable(path, messageOf(error), 'Check its permissions.', error);
}

function unreadable(path: string, reason: string, hint: string, cause?: unknown): AppError {
  return new AppError('IMAGE_UNREADABLE', `image ${path} cannot be used: ${reason}`, {
    details: { path },
    hint,
    cause,
  });
}
