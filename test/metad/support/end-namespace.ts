import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

/**
 * Ends `unshare --pid --fork` with all processes of its namespace. Kills the first process of the
 * namespace, so that `unshare` ends after all others.
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
