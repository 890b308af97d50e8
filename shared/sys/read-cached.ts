import koffi from 'koffi';

const libc = koffi.load('libc.so.6');
const cPreadv2 = libc.func(
  'int64_t preadv2(int fd, const void *iov, int count, int64_t offset, int flags)',
);
const RWF_NOWAIT = 8;
/** struct iovec: address and length of the buffer. */
const IOVEC_BYTES = 16;
const LENGTH_OFFSET = 8;

/** @returns the number of bytes read into the buffer; 0 when an ordinary read is needed */
export type ReadCached = (position: number, length: number) => number;

/**
 * Returns a function that reads cached data of an open file (preadv2(2), RWF_NOWAIT) at once: a
 * read in the thread pool costs more than copying some hundred KiB. It never waits for a disk, and
 * reads nothing if the file system does not support the flag.
 * @param buffer with its own memory, as from `Buffer.allocUnsafeSlow`
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
