import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** A thread of a daemon: its event loop, or the libuv thread for file system calls. */
export type Thread = 'loop' | 'files';

export interface KillPoint {
  readonly thread: Thread;
  /** Name of the system call. */
  readonly call: string;
  /** Number of the call in its thread, from 1, counted from arming. */
  readonly when: number;
}

/** Returns a point for each of these calls, without its number. */
export const callsOf = (
  thread: Thread,
  ...calls: readonly string[]
): readonly Pick<KillPoint, 'thread' | 'call'>[] => calls.map((call) => ({ thread, call }));

/** The fault at the call. */
export type Blow = 'killed' | 'full-once' | 'full-from-then-on';

/** An armed trap. A disarmed trap no longer affects the process. */
export interface Trap {
  /** Resolves when the process has exited, or can no longer die of the trap. */
  disarm(): Promise<void>;
  /** Returns whether the call occurred. Valid after `disarm`. */
  isSprung(): boolean;
}

const EFFECTS: Readonly<Record<Blow, (when: number) => string>> = {
  killed: (when) => `signal=KILL:when=${when}`,
  'full-once': (when) => `error=ENOSPC:when=${when}`,
  'full-from-then-on': (when) => `error=ENOSPC:when=${when}+`,
};
const ATTACH_POLL_MS = 2;
/** Errors of /proc for an ended process or thread. */
const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH']);
/**
 * Name of the threads in libuv's pool. A daemon under test has one, because it runs with
 * UV_THREADPOOL_SIZE=1.
 */
const POOL_THREAD = 'libuv-worker';

/** Returns the thread's id; undefined before its start. */
export function findThread(pid: number, thread: Thread): number | undefined {
  if (thread === 'loop') return pid;
  return readdirSync(`/proc/${pid}/task`)
    .map(Number)
    .find((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim() === POOL_THREAD);
}

/**
 * Kills the process (SIGKILL) when a thread enters the call, or makes this call or all later ones
 * fail as on a full disk (ENOSPC). strace counts the calls of each thread separately, so a point is
 * the same in each run.
 */
export async function armTrap(
  pid: number,
  { thread, call, when }: KillPoint,
  blow: Blow = 'killed',
): Promise<Trap> {
  const id = findThread(pid, thread);
  if (id === undefined) throw new Error(`process ${pid} has no ${POOL_THREAD}`);
  const strace = spawn(
    'strace',
    [
      // Reports and errors of strace share its stderr.
      ...['-qq', '-p', String(id), '-s', '0'],
      ...['-e', `trace=${call}`, '-e', `inject=${call}:${EFFECTS[blow](when)}`],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  strace.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  while (!isTraced(pid, id)) {
    if (strace.exitCode !== null) throw new Error(`strace does not attach: ${said}`);
    await sleep(ATTACH_POLL_MS);
  }
  return {
    isSprung: () => said.includes('(INJECTED)'),
    disarm: async () => {
      if (strace.exitCode === null && strace.signalCode === null) {
        const closed = once(strace, 'close');
        strace.kill('SIGTERM');
        await closed;
      }
      while (!isDecided(pid, id)) await sleep(ATTACH_POLL_MS);
      // Node reports the exit of a child in the next turn of the event loop.
      await sleep(ATTACH_POLL_MS);
    },
  };
}

/**
 * Tells whether the kill has happened or can no longer happen. A thread handles the signal at its
 * next scheduling, on a busy host after strace's end; a sleeping thread has handled it.
 */
function isDecided(pid: number, id: number): boolean {
  const state = stateOf(pid, id);
  if (state === 'S') return true;
  return (state === undefined || state === 'Z') && threadsOf(pid) <= 1;
}

/** Returns the state by proc(5); undefined when the thread does not exist. */
function stateOf(pid: number, id: number): string | undefined {
  return orGone(() =>
    /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/task/${id}/status`, 'utf8')),
  )?.[1];
}

function threadsOf(pid: number): number {
  return orGone(() => readdirSync(`/proc/${pid}/task`))?.length ?? 0;
}

function orGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (GONE.has(systemCodeOf(error))) return undefined;
    throw error;
  }
}

function isTraced(pid: number, id: number): boolean {
  const status = readFileSync(`/proc/${pid}/task/${id}/status`, 'utf8');
  return !/^TracerPid:\s+0$/m.test(status);
}
