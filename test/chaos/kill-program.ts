import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../scripts/demo/lab.ts';
import { armTrap, findThread, type KillPoint } from './kill-at-call.ts';

const projectDir = join(import.meta.dirname, '../..');
const LIMIT_MS = 60_000;

/** A program of this checkout with its arguments. */
export interface Program {
  readonly folder: 'cluster-cli' | 'appliance';
  /** `GNT_PROGRAM`. */
  readonly name: string;
  readonly args: readonly string[];
  readonly root: string;
}

export interface ProgramEnd {
  /** The call occurred: strace killed the program, or a child that it needed. */
  readonly isHurt: boolean;
  readonly stderr: string;
}

/**
 * Runs a program until one of its threads enters the system call for the nth time, which kills it.
 * strace counts each thread separately, and starts again from 1 in each child.
 */
export async function runUntilCall(
  { folder, name, args, root }: Program,
  { call, when }: { readonly call: string; readonly when: number },
): Promise<ProgramEnd> {
  const node = join(projectDir, 'node_modules/.bin/node');
  const child = spawn(
    'strace',
    [
      // No --seccomp-bpf: with it, strace 6.1 restarts the count after each call.
      ...['-qq', '-f', '-o', '/dev/null'],
      ...['-e', `trace=${call}`, '-e', `inject=${call}:signal=KILL:when=${when}`],
      ...[node, '--disable-warning=ExperimentalWarning', join(projectDir, folder, 'main.ts'), ...args],
    ],
    {
      env: { ...process.env, GNT_ROOT: root, GNT_PROGRAM: name, UV_THREADPOOL_SIZE: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  ); // prettier-ignore
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // `exit`, since background children keep stderr open and delay `close`.
  const exit = once(child, 'exit');
  const limit = new AbortController();
  const late = sleep(LIMIT_MS, undefined, { signal: limit.signal }).then(
    () => child.kill('SIGKILL'),
    () => undefined,
  );
  // The type follows Node's documentation of the event.
  const [status] = (await exit) as [number | null];
  limit.abort();
  await late;
  child.stderr.destroy();
  return { isHurt: status !== 0, stderr };
}

/**
 * Starts the node until the call. @returns false when the daemon started without reaching the call;
 * it keeps running
 */
export async function startUntilCall(
  lab: Lab,
  point: KillPoint,
  options: readonly string[],
): Promise<boolean> {
  const starting = lab.startNode(...options).then(
    () => true,
    () => false,
  );
  const node = lab.node();
  const isOver = (): boolean => node.exitCode !== null || node.signalCode !== null;
  const pid = node.pid ?? 0;
  // libuv starts the thread with the first file system call.
  while (!isOver() && findThread(pid, point.thread) === undefined) await sleep(1);
  const trap = isOver() ? undefined : await armTrap(pid, point).catch(() => undefined);
  const isUp = await starting;
  await trap?.disarm();
  return !isUp;
}
