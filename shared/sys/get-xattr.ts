import { checked, errorName, libc } from './libc.ts';

const cLgetxattr = libc.func(
  'int64_t lgetxattr(const char *path, const char *name, void *value, size_t size)',
);
/** linux/limits.h, XATTR_SIZE_MAX */
const MAX_BYTES = 65_536;
/** The file has no such attribute, or its file system has none at all. */
const ABSENT = ['ENODATA', 'EOPNOTSUPP', 'ENOTSUP'];

/**
 * Reads an extended attribute of a file; of a link itself, not of its target.
 * @returns undefined when the file has no such attribute
 * @throws Error of `errno`, with `code`
 */
export function getXattr(path: string, name: string): Buffer | undefined {
  const value = Buffer.alloc(MAX_BYTES);
  const length: unknown = cLgetxattr(path, name, value, value.length);
  if (length === -1 && ABSENT.includes(errorName())) return undefined;
  return value.subarray(0, checked('lgetxattr', length));
}
