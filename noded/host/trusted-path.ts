import type { Stats } from 'node:fs';
import { lstat, mkdir, readlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { getXattr } from '#shared/sys/get-xattr.ts';

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;
/** The kernel's limit for links in one path. */
const MAX_LINKS = 40;

/**
 * Refuses a path that another user could replace. A user with write permission on a parent folder
 * can put another folder in its place. So every parent, also of a link's target, must belong to
 * root or this process's user, without other writers. A parent may be sticky, like /tmp, where
 * other users cannot rename foreign files; the path itself may not.
 * @param called name of the path in the refusal
 * @throws AppError HOST_PREREQUISITE naming the folder; the system's error when the path is missing
 */
export async function requireTrustedPath(path: string, called: string): Promise<void> {
  await checkWay(resolve(path), { links: MAX_LINKS, isEnd: true, called });
}

/**
 * Refuses a folder that another user could replace. Others may write to the folder itself, as for
 * uploads. Checks every parent folder, also of a link's target.
 * @throws as {@link requireTrustedPath}
 */
export async function requireTrustedPlace(path: string, called: string): Promise<void> {
  let whole = resolve(path);
  for (let links = MAX_LINKS; links > 0; links -= 1) {
    const above = dirname(whole);
    const found = await lstat(whole);
    // In a sticky folder only the owner of an entry can replace it.
    const isOwn = [0, process.geteuid?.()].includes(found.uid);
    await checkWay(above, { links, isEnd: !isOwn, called });
    if (!found.isSymbolicLink()) return;
    whole = resolve(above, await readlink(whole));
  }
  throw untrusted(path, { called }, 'too many links', 'Give another path.');
}

/**
 * Creates a folder on a trusted path. Checks existing parents first, so that no folder is created
 * in a place chosen by another user.
 * @throws as {@link requireTrustedPath}
 */
export async function makeTrustedFolder(path: string, called: string): Promise<void> {
  const whole = resolve(path);
  const existing = await nearestExisting(whole);
  await checkWay(existing, { links: MAX_LINKS, isEnd: existing === whole, called });
  await mkdir(whole, { recursive: true, mode: 0o755 });
  await requireTrustedPath(whole, called);
}

async function nearestExisting(path: string): Promise<string> {
  try {
    await lstat(path);
    return path;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return await nearestExisting(dirname(path));
  }
}

async function checkWay(
  path: string,
  at: { links: number; readonly isEnd: boolean; readonly called: string },
): Promise<void> {
  const { called } = at;
  const above = dirname(path);
  const onTheWay = { links: at.links, isEnd: false, called };
  if (above !== path) await checkWay(above, onTheWay);
  const found = await lstat(path);
  const owners = [0, process.geteuid?.()];
  const refuse = (reason: string, remedy: string): AppError => untrusted(path, at, reason, remedy);
  if (!owners.includes(found.uid)) {
    throw refuse(`it belongs to user ${found.uid}`, `chown root ${path}`);
  }
  if (found.isSymbolicLink()) {
    if (onTheWay.links <= 0) throw refuse('too many links', 'Give another path.');
    const target = resolve(above, await readlink(path));
    await checkWay(target, { links: onTheWay.links - 1, isEnd: at.isEnd, called });
    return;
  }
  const isSticky = (found.mode & STICKY) !== 0 && !at.isEnd;
  if (isSticky) return;
  const inheriting = at.isEnd ? heir(path, found, owners) : undefined;
  const writer = otherWriter(path, found, owners) ?? inheriting;
  if (writer !== undefined) throw refuse(writer.reason, writer.remedy);
}

interface OtherWriter {
  readonly reason: string;
  readonly remedy: string;
}

/**
 * Returns another user that may write a folder, and the command against it. With an access list,
 * the group bits of the mode are its mask, and only the list counts.
 */
function otherWriter(
  path: string,
  found: Stats,
  owners: readonly (number | undefined)[],
): OtherWriter | undefined {
  const byMode = { reason: 'users other than root can write to it', remedy: `chmod go-w ${path}` };
  const list = getXattr(path, ACCESS_LIST);
  // Root's group has no other members.
  if (list === undefined) {
    const forOthers = found.gid === 0 ? WRITABLE_BY_ALL : WRITABLE_BY_ALL | WRITABLE_BY_GROUP;
    return (found.mode & forOthers) === 0 ? undefined : byMode;
  }
  const writers = aclWriters(list);
  if (writers.everybody || (writers.owningGroup && found.gid !== 0)) return byMode;
  const named = namedWriter(writers, owners);
  if (named === undefined) return undefined;
  return { reason: `its access list allows ${named} to write to it`, remedy: `setfacl -b ${path}` };
}

/** Returns another user that may write new files of a folder. */
function heir(
  path: string,
  found: Stats,
  owners: readonly (number | undefined)[],
): OtherWriter | undefined {
  const list = getXattr(path, DEFAULT_LIST);
  if (list === undefined) return undefined;
  const writers = aclWriters(list);
  const isOpen = writers.everybody || (writers.owningGroup && found.gid !== 0);
  const named = isOpen ? 'users other than root' : namedWriter(writers, owners);
  if (named === undefined) return undefined;
  const reason = `its default access list allows ${named} to write to new files in it`;
  return { reason, remedy: `setfacl -k ${path}` };
}

function namedWriter(
  { uids, gids }: AclWriters,
  owners: readonly (number | undefined)[],
): string | undefined {
  const uid = uids.find((id) => !owners.includes(id));
  const gid = gids.find((id) => id !== 0);
  if (uid === undefined && gid === undefined) return undefined;
  return uid === undefined ? `group ${gid}` : `user ${uid}`;
}

function untrusted(
  path: string,
  { called }: { readonly called: string },
  reason: string,
  remedy: string,
): AppError {
  return new AppError('HOST_PREREQUISITE', `${called} is not safe below ${path}: ${reason}`, {
    details: { path },
    hint: `Run ${remedy}, or choose a folder that only root can write to.`,
  });
}

/** Extended attribute with a file's access list: linux/posix_acl_xattr.h. */
const ACCESS_LIST = 'system.posix_acl_access';
/**
 * Extended attribute with the list that new files of a folder inherit. It replaces the umask, so
 * that its users may write files created with the default mode.
 */
const DEFAULT_LIST = 'system.posix_acl_default';

/** A little-endian version, then entries of tag, permissions and id: 2, 2 and 4 bytes. */
const VERSION = 2;
const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const WRITE = 0o2;
const TAG = { owner: 0x01, user: 0x02, owningGroup: 0x04, group: 0x08, mask: 0x10, other: 0x20 };

/** Users and groups with write permission, beside the file's owner. */
interface AclWriters {
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
function aclWriters(list: Buffer): AclWriters {
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
