import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

/**
 * Ends `unshare --pid --fork` with all that runs in its namespace. It is the first process in there
 * that is killed, so that `unshare` ends when all others have, and not before.
 */
export async function endNamespace(unshare: ChildProcess | undefined): Promise<void> {
  const { pid, exitCode, signalCode } = unshare ?? {};
  if (!unshare || exitCode !== null || signalCode !== null) return;
  const ended = once(unshare, 'exit');
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const first = Number(children);
  if (first > 0) process.kill(first, 'SIGKILL');
  else unshare.kill('SIGKILL');
  await ended;
}
