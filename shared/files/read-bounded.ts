import { openRegular } from './open-regular.ts';

/**
 * A file's bytes, never more than the limit: what is on disk may grow while it is read, and may be
 * a device or a FIFO.
 * @throws Error with `code` of the system (ENOENT), EFBIG over the limit, EINVAL when it is no
 * regular file
 */
export async function readBounded(
  path: string,
  maxBytes: number,
  options: { readonly followLinks: boolean } = { followLinks: true },
): Promise<Buffer> {
  const { file, stat } = await openRegular(path, options);
  try {
    if (stat.size > maxBytes) throw tooBig(path, maxBytes);
    const buffer = Buffer.alloc(stat.size + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) return buffer.subarray(0, length);
      length += bytesRead;
      if (length === buffer.length) throw systemError('EAGAIN', `${path} grew while it was read`);
    }
  } finally {
    await file.close();
  }
}

function tooBig(path: string, maxBytes: number): Error {
  return systemError('EFBIG', `${path} is larger than ${maxBytes} bytes`);
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
