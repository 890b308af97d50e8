/** Extended attribute with a file's access list: linux/posix_acl_xattr.h. */
export const ACCESS_LIST = 'system.posix_acl_access';
/**
 * Extended attribute with the list that new files of a folder inherit. It replaces the umask, so
 * that its users may write files created with the default mode.
 */
export const DEFAULT_LIST = 'system.posix_acl_default';

/** A little-endian version, then entries of tag, permissions and id: 2, 2 and 4 bytes. */
const VERSION = 2;
const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const WRITE = 0o2;
const TAG = { owner: 0x01, user: 0x02, owningGroup: 0x04, group: 0x08, mask: 0x10, other: 0x20 };

/** Users and groups with write permission, beside the file's owner. */
export interface AclWriters {
  readonly uids: readonly number[];
  readonly gids: readonly number[];
  readonly owningGroup: boolean;
  readonly everybody: boolean;
}

/**
 * Reads the writers of an access list. The mask limits all entries except those of the owner and
 * the others (acl(5), "ACCESS CHECK ALGORITHM").
 * @param list value of {@link ACCESS_LIST}
 * @throws RangeError for an unknown format
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
