import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { AppError } from '#shared/errors/app-error.ts';

export interface Lock {
  release(): Promise<void>;
}

/**
 * Holds an exclusive lock on a file until released. The lock belongs to a child (flock(1)) that
 * waits on a pipe, so that it ends with this process. Its own session keeps a Ctrl-C from it: the
 * lock must last while this process cleans up.
 * @param onWait called once when another process has the lock
 */
export async function acquireLock(
  path: string,
  options: { onWait: () => void; signal: AbortSignal },
): Promise<Lock> {
  const child = spawn('flock', ['--exclusive', path, 'sh', '-c', 'echo held; cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const { stdin, stdout } = child;
  const ended = once(child, 'close');
  const notice = setTimeout(options.onWait, 300);
  const abort = (): void => void child.kill();
  options.signal.addEventListener('abort', abort, { once: true });
  const held = await Promise.race([once(stdout, 'data').then(() => true), ended.then(() => false)]);
  clearTimeout(notice);
  options.signal.removeEventListener('abort', abort);
  options.signal.throwIfAborted();
  if (!held) throw new AppError('APPLIANCE_BUILD', `cannot lock ${path}`);
  return {
    release: async () => {
      stdin.end();
      await ended;
    },
  };
}
