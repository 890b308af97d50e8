import { lstat, mkdir, readlink } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;
/** The kernel follows as many links in one path. */
const MAX_LINKS = 40;

/** Before anything below the root is opened. @throws AppError HOST_PREREQUISITE */
export async function requireTrustedRoot({ root, runDir, stateDir }: RootPaths): Promise<void> {
  for (const path of [root, runDir, stateDir]) {
    await mkdir(path, { recursive: true, mode: 0o755 });
    await checkTrustedPath(path);
  }
}

/**
 * Who can write a folder on the way to a path can put another one in its place, with a store, OS
 * definitions and keys of their own. Every folder on the way, also to where a link leads, has to be
 * root's or this process' user's, and writable by nobody else. In a sticky one, like /tmp, others
 * cannot rename what is not theirs: so one may be on the way, but not at its end.
 * @throws AppError HOST_PREREQUISITE naming the folder; the system's error when there is no such
 * path
 */
async function checkTrustedPath(path: string): Promise<void> {
  await checkWay(resolve(path), { links: MAX_LINKS, isEnd: true });
}

async function checkWay(
  path: string,
  at: { links: number; readonly isEnd: boolean },
): Promise<void> {
  const above = dirname(path);
  const onTheWay = { links: at.links, isEnd: false };
  if (above !== path) await checkWay(above, onTheWay);
  const found = await lstat(path);
  const owners = [0, process.geteuid?.()];
  if (!owners.includes(found.uid)) {
    throw untrusted(path, `it belongs to user ${found.uid}`, `chown root ${path}`);
  }
  if (found.isSymbolicLink()) {
    if (onTheWay.links <= 0) throw untrusted(path, 'too many links', 'give another root');
    const target = resolve(above, await readlink(path));
    await checkWay(target, { links: onTheWay.links - 1, isEnd: at.isEnd });
    return;
  }
  // Root's own group has nobody else in it.
  const forOthers = found.gid === 0 ? WRITABLE_BY_ALL : WRITABLE_BY_ALL | WRITABLE_BY_GROUP;
  const isSticky = (found.mode & STICKY) !== 0 && !at.isEnd;
  if ((found.mode & forOthers) !== 0 && !isSticky) {
    throw untrusted(path, 'others than root may write it', `chmod go-w ${path}`);
  }
}

function untrusted(path: string, reason: string, hint: string): AppError {
  return new AppError('HOST_PREREQUISITE', `GNT_ROOT is not safe below ${path}: ${reason}`, {
    details: { path },
    hint: `${hint}, or set GNT_ROOT to a folder that only root can write`,
  });
}
