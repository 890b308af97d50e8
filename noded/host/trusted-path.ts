import { lstat, readlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;
/** The kernel follows as many links in one path. */
const MAX_LINKS = 40;

/**
 * Who can write a folder on the way to a path can put another one in its place, with content of
 * their own. Every folder on the way, also to where a link leads, has to be root's or this process'
 * user's, and writable by nobody else. In a sticky one, like /tmp, others cannot rename what is not
 * theirs: so one may be on the way, but not at its end.
 * @param called what the path is called in the refusal
 * @throws AppError HOST_PREREQUISITE naming the folder; the system's error when there is no such
 * path
 */
export async function requireTrustedPath(path: string, called: string): Promise<void> {
  await checkWay(resolve(path), { links: MAX_LINKS, isEnd: true, called });
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
    if (onTheWay.links <= 0) throw refuse('too many links', 'give another path');
    const target = resolve(above, await readlink(path));
    await checkWay(target, { links: onTheWay.links - 1, isEnd: at.isEnd, called });
    return;
  }
  // Root's own group has nobody else in it.
  const forOthers = found.gid === 0 ? WRITABLE_BY_ALL : WRITABLE_BY_ALL | WRITABLE_BY_GROUP;
  const isSticky = (found.mode & STICKY) !== 0 && !at.isEnd;
  if ((found.mode & forOthers) !== 0 && !isSticky) {
    throw refuse('others than root may write it', `chmod go-w ${path}`);
  }
}

function untrusted(
  path: string,
  { called }: { readonly called: string },
  reason: string,
  remedy: string,
): AppError {
  return new AppError('HOST_PREREQUISITE', `${called} is not safe below ${path}: ${reason}`, {
    details: { path },
    hint: `${remedy}, or choose a folder that only root can write`,
  });
}
