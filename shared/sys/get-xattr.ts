import { checked, errorName, libc } from './libc.ts';

const cLgetxattr = libc.func(
  'int64_t lgetxattr(const char *path, const char *name, void *value, size_t size)',
);
/** linux/limits.h, XATTR_SIZE_MAX */
const MAX_BYTES = 65_536;
/** The file has no such attribute; its file system knows of none. */
const ABSENT = ['ENODATA', 'EOPNOTSUPP', 'ENOTSUP'];

/**
 * An extended attribute of a file, of a link itself and not of where it leads.
 * @returns undefined when the file has none of that name
 * @throws Error of `errno`, with `code`
 */
export function getXattr(path: string, name: string): Buffer | undefined {
  const value = Buffer.alloc(MAX_BYTES);
  const length: unknown = cLgetxattr(path, name, value, value.length);
  if (length === -1 && ABSENT.includes(errorName())) return undefined;
  return value.subarray(0, checked('lgetxattr', length));
}
