import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { tryLockFile, tryLockRecord } from '#shared/sys/file-locks.ts';

/**
 * The pid file of a host's only metadata daemon, locked from `claimPidFile` to the end of this
 * process.
 */
export interface PidFile extends Disposable {
  /**
   * Writes this process' pid. Ganeti's node daemon takes a live pid there as a sign of a ready
   * daemon.
   */
  announce(): void;
}

/**
 * Locks the pid file in both ways: Ganeti's Python daemons use flock(2), those in Haskell fcntl(2).
 * So neither gnt-metad nor Ganeti's daemon starts a second time. Disposal removes the file, unless
 * it was replaced.
 * @throws AppError CONFLICT with the pid of the daemon that has it
 */
export function claimPidFile(path: string): PidFile {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  for (;;) {
    const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o644);
    if (!tryLockFile(fd) || !tryLockRecord(fd)) {
      const pid = readFileSync(fd, 'utf8').trim();
      closeSync(fd);
      throw new AppError(
        'CONFLICT',
        `a metadata daemon is already running, with pid ${pid || 'unknown'}`,
        {
          details: { path, pid },
          hint: `Stop it first, or give this one its own --ganeti-socket and --ganeti-pid-file. ${path} is locked.`,
        },
      );
    }
    // The last owner may have removed the file between our open and our lock.
    if (isStillAt(path, fd))
      return { announce: () => write(fd), [Symbol.dispose]: () => giveBack(path, fd) };
    closeSync(fd);
  }
}

function write(fd: number): void {
  ftruncateSync(fd, 0);
  writeSync(fd, `${process.pid}\n`, 0);
}

function giveBack(path: string, fd: number): void {
  if (isStillAt(path, fd)) rmSync(path, { force: true });
  closeSync(fd);
}

function isStillAt(path: string, fd: number): boolean {
  try {
    const [there, ours] = [statSync(path), fstatSync(fd)];
    return there.ino === ours.ino && there.dev === ours.dev;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
