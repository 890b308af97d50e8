import koffi from 'koffi';

const libc = koffi.load('libc.so.6');
const cPreadv2 = libc.func(
  'int64_t preadv2(int fd, const void *iov, int count, int64_t offset, int flags)',
);
const RWF_NOWAIT = 8;
/** struct iovec: where the bytes go, and how many at most. */
const IOVEC_BYTES = 16;
const LENGTH_OFFSET = 8;

/** @returns how many bytes are in the buffer now; 0 where it takes an ordinary read to know */
export type ReadCached = (position: number, length: number) => number;

/**
 * Reads of an open file what memory holds of it (preadv2(2), RWF_NOWAIT), at once: a thread that
 * reads costs more than the copy of some hundred KiB does. It never waits for a disk, and reads
 * nothing where the file system cannot tell.
 * @param buffer of its own memory, as `Buffer.allocUnsafeSlow` makes it
 */
export function readsOfCache(fd: number, buffer: Buffer): ReadCached {
  const iovec = Buffer.alloc(IOVEC_BYTES);
  iovec.writeBigUInt64LE(koffi.address(buffer));
  return (position, length) => {
    if (length > buffer.length)
      throw new RangeError(`${length} bytes exceed the size of the buffer`);
    iovec.writeBigUInt64LE(BigInt(length), LENGTH_OFFSET);
    return Math.max(0, Number(cPreadv2(fd, iovec, 1, position, RWF_NOWAIT)));
  };
}
