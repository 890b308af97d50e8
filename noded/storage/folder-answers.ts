import { spawn } from 'node:child_process';
import { AppError } from '#shared/errors/app-error.ts';

/** A file server that takes longer is of no use to a machine either. */
const ANSWER_MS = 10_000;
/** How long one that was late is not asked again: its many instances wait for it once. */
const SILENCE_MS = 3_000;

/** The question that is asked of each folder, or was not answered just now. */
const asked = new Map<string, Promise<boolean>>();

/**
 * Asks whether the file system of a folder answers at all, by a process that may hang: a call of
 * this one that hangs, as those do when a file server is away, takes one of the few threads that
 * all files of all instances wait for. A folder that is not there is an answer.
 * @throws AppError HOST_PREREQUISITE
 */
export async function requireAnswer(path: string): Promise<void> {
  let question = asked.get(path);
  if (question === undefined) asked.set(path, (question = ask(path)));
  if (await question) return;
  throw new AppError('HOST_PREREQUISITE', `the shared folder ${path} does not answer`, {
    details: { path },
    hint: 'Check that the file server is up and reachable from this node. Nothing was changed.',
  });
}

/** One that cannot even be killed stays the only one: nobody asks anew before it has ended. */
async function ask(path: string): Promise<boolean> {
  const child = spawn('/usr/bin/stat', ['--file-system', '--format=%T', '--', path], {
    cwd: '/',
    env: { LC_ALL: 'C' },
    stdio: 'ignore',
  });
  // One that cannot be killed must not keep the daemon from ending.
  child.unref();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    resolve(false);
    child.kill('SIGKILL');
  }, ANSWER_MS);
  const end = (): void => {
    clearTimeout(timer);
    resolve(true);
    if (isLate) setTimeout(() => asked.delete(path), SILENCE_MS).unref();
    else asked.delete(path);
  };
  child.once('exit', end);
  // It could not be started: what is wrong then is told by who goes on.
  child.once('error', end);
  return await promise;
}
