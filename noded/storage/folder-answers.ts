import { AppError } from '#shared/errors/app-error.ts';
import { launchProgram } from '#shared/process/launch.ts';

/** A slower file server is too slow for an instance too. */
const ANSWER_MS = 10_000;
/** How long a late folder counts as silent, so that its instances wait for it only once. */
const SILENCE_MS = 3_000;

/** Checks in progress or recently unanswered, by folder. */
const asked = new Map<string, Promise<boolean>>();

/**
 * Checks in a child process that the file system of a folder responds. A call in this process that
 * hangs, as on an unreachable file server, would block one of the few threads for all file access.
 * A missing folder counts as a response.
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

/** Asks with one process per folder, even if that process cannot be killed. */
async function ask(path: string): Promise<boolean> {
  const program = launchProgram(['/usr/bin/stat', '--file-system', '--format=%T', '--', path], {
    // A process that cannot be killed must not keep the daemon running.
    outlives: true,
    stdio: 'ignore',
  });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    resolve(false);
    program.kill();
  }, ANSWER_MS);
  const end = (): void => {
    clearTimeout(timer);
    resolve(true);
    if (isLate) setTimeout(() => asked.delete(path), SILENCE_MS).unref();
    else asked.delete(path);
  };
  // If stat cannot start, the next call on the folder reports the problem.
  program.exit.then(end, end);
  return await promise;
}
