import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { openHostFile } from '../../host/open-host-file.ts';

/** An image with its size when it was opened, which was compared with a disk's. */
export interface SizedFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/**
 * Reads exactly as many bytes as the file had when it was opened: a growing file would exceed its
 * target, or never end. `verifyUnchanged` detects growth.
 * @param offset of the first byte
 * @throws AppError IMAGE_UNREADABLE when the file became shorter, or the signal's reason
 */
export async function* readImageBytes(
  { path, sizeBytes }: SizedFile,
  signal?: AbortSignal,
  offset = 0,
): AsyncGenerator<Buffer, void> {
  await using file = await openHostFile(path);
  for (let done = offset; done < sizeBytes;) {
    signal?.throwIfAborted();
    // Each chunk has its own buffer: a reader may still use the previous one.
    const chunk = Buffer.allocUnsafe(Math.min(MIB, sizeBytes - done));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, done);
    if (bytesRead === 0)
      throw new AppError(
        'IMAGE_UNREADABLE',
        `the image changed while it was read: it ends after ${done} of ${sizeBytes} bytes`,
        {
          details: { sizeBytes, doneBytes: done },
          hint: 'Leave the file unchanged, and reinstall.',
        },
      );
    done += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}
