/** The attribute in which Linux keeps a file's access list: linux/posix_acl_xattr.h. */
export const ACCESS_LIST = 'system.posix_acl_access';
/**
 * The attribute in which a folder keeps the access list of what is made in it. It counts in place
 * of the umask: what is made without a mode of its own is writable by whoever it names.
 */
export const DEFAULT_LIST = 'system.posix_acl_default';

/** A little-endian version, then entries of tag, permissions and id: 2, 2 and 4 bytes. */
const VERSION = 2;
const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const WRITE = 0o2;
const TAG = { owner: 0x01, user: 0x02, owningGroup: 0x04, group: 0x08, mask: 0x10, other: 0x20 };

/** Who an access list lets write, beside the file's owner. */
export interface AclWriters {
  readonly uids: readonly number[];
  readonly gids: readonly number[];
  readonly owningGroup: boolean;
  readonly everybody: boolean;
}

/**
 * Reads an access list. What its mask takes away is not granted to anybody but the owner and the
 * others (acl(5), "ACCESS CHECK ALGORITHM").
 * @param list the value of {@link ACCESS_LIST}
 * @throws RangeError when it is of a kind that is not known
 */
export function aclWriters(list: Buffer): AclWriters {
  const length = list.length - HEADER_BYTES;
  if (length < 0 || length % ENTRY_BYTES !== 0 || list.readUInt32LE(0) !== VERSION) {
    throw new RangeError(`an access list of ${list.length} bytes is not of version ${VERSION}`);
  }
  const entries = Array.from({ length: length / ENTRY_BYTES }, (_, index) => {
    const at = HEADER_BYTES + index * ENTRY_BYTES;
    return {
      tag: list.readUInt16LE(at),
      writes: (list.readUInt16LE(at + 2) & WRITE) !== 0,
      id: list.readUInt32LE(at + 4),
    };
  });
  const isMasked = entries.some(({ tag, writes }) => tag === TAG.mask && !writes);
  const writers = (tag: number) => entries.filter((entry) => entry.tag === tag && entry.writes);
  const granted = (tag: number) => (isMasked ? [] : writers(tag));
  return {
    uids: granted(TAG.user).map(({ id }) => id),
    gids: granted(TAG.group).map(({ id }) => id),
    owningGroup: granted(TAG.owningGroup).length > 0,
    everybody: writers(TAG.other).length > 0,
  };
}
