import { getSystemErrorName } from 'node:util';
import { checked, errorName, libc, numberOf } from './libc.ts';

const cMemfdCreate = libc.func('int memfd_create(const char *name, unsigned int flags)');
const cLseek = libc.func('int64_t lseek(int fd, int64_t offset, int whence)');
const cPosixFadvise = libc.func(
  'int posix_fadvise(int fd, int64_t offset, int64_t length, int advice)',
);
const cRenameat2 = libc.func(
  'int renameat2(int fromDirectory, const char *from, int toDirectory, const char *to, unsigned int flags)',
);
const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;
const SEEK_DATA = 3;
const SEEK_HOLE = 4;
const POSIX_FADV_DONTNEED = 4;
const MFD_CLOEXEC = 1;

/**
 * Exchanges two paths of one file system, of any kind: neither is missing at any moment.
 * @throws Error with `code` ENOENT when one of them is missing, EINVAL when the file system cannot
 */
export function exchangePaths(a: string, b: string): void {
  checked('renameat2', cRenameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}

/**
 * Drops the page cache of a synced file, so that later reads come from the disk. File systems
 * without a disk, such as tmpfs, drop nothing.
 */
export function dropCached(fd: number): void {
  // Returns the error code, without errno.
  const code = numberOf(cPosixFadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
  if (code !== 0) throw new Error(`posix_fadvise failed: ${getSystemErrorName(-code)}`);
}

/**
 * Returns the next data of a sparse file at or after a position; null when only a hole follows.
 * Moves the descriptor's own position.
 */
export function findData(
  fd: number,
  from: number,
): { readonly start: number; readonly end: number } | null {
  const start = Number(cLseek(fd, from, SEEK_DATA));
  if (start < 0 && errorName() === 'ENXIO') return null;
  const end = Number(cLseek(fd, checked('lseek SEEK_DATA', start), SEEK_HOLE));
  return { start, end: checked('lseek SEEK_HOLE', end) };
}

/**
 * Creates an empty file without a path, for reading and writing. Its content is in memory and
 * disappears with the last descriptor.
 */
export function createMemoryFile(name: string): number {
  return checked('memfd_create', cMemfdCreate(name, MFD_CLOEXEC));
}
