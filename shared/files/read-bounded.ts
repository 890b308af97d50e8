import { openRegular } from './open-regular.ts';

/**
 * Reads a file up to the limit: a path may be a device or a FIFO, and a file may grow meanwhile.
 * @throws Error with `code` of the system (ENOENT), EFBIG over the limit, EINVAL for anything but a
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
