import { checked, errorName, libc, numberOf } from './libc.ts';

const cFcntl = libc.func('int fcntl(int fd, int command, void *argument)');
const cFlock = libc.func('int flock(int fd, int operation)');
const LOCK_EX_NB = 2 | 4;
const F_SETLK = 6;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_UNLCK = 2;
/**
 * F_WRLCK of the whole file, in the 32 bytes of a `struct flock` of 64-bit Linux: l_type, l_whence,
 * l_start, l_len, l_pid.
 */
const WHOLE_FILE_WRITE_LOCK = Buffer.from([1, ...new Array<number>(31).fill(0)]);

/**
 * Locks an open file by flock(2) against other processes that do so. The lock ends with the
 * descriptor or the process.
 * @returns false when another process has the lock
 */
export function tryLockFile(fd: number): boolean {
  const result = numberOf(cFlock(fd, LOCK_EX_NB));
  if (result < 0 && errorName() === 'EAGAIN') return false;
  checked('flock', result);
  return true;
}

/**
 * Locks an open file by a POSIX record lock, which is independent of flock(2). The lock ends with
 * the process, or when the process closes any descriptor of that file.
 * @returns false when another process has the lock
 */
export function tryLockRecord(fd: number): boolean {
  return tryLockWhole(fd, F_SETLK);
}

/**
 * Locks an open file as QEMU's block layer locks its images: by a record lock that belongs to the
 * open file, not to the process. It succeeds only if no QEMU process has the image open, and
 * excludes all until the descriptor is closed.
 * @param fd open for writing
 * @returns false when the file is locked
 */
export function tryLockImage(fd: number): boolean {
  return tryLockWhole(fd, F_OFD_SETLK);
}

function tryLockWhole(fd: number, command: number): boolean {
  const result = numberOf(cFcntl(fd, command, WHOLE_FILE_WRITE_LOCK));
  const code = result < 0 ? errorName() : '';
  if (code === 'EAGAIN' || code === 'EACCES') return false;
  checked('fcntl', result);
  return true;
}

/** Returns whether another open file locks a byte in this way, for reading or writing. */
export function isByteLocked(fd: number, offset: number): boolean {
  const lock = Buffer.from(WHOLE_FILE_WRITE_LOCK);
  lock.writeBigInt64LE(BigInt(offset), 8);
  lock.writeBigInt64LE(1n, 16);
  checked('fcntl F_OFD_GETLK', cFcntl(fd, F_OFD_GETLK, lock));
  return lock.readInt16LE(0) !== F_UNLCK;
}
