import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** A thread of a daemon: its event loop, or the one that does its file system calls. */
export type Thread = 'loop' | 'files';

export interface KillPoint {
  readonly thread: Thread;
  /** A system call by its name. */
  readonly call: string;
  /** It is the so-manieth such call of that thread, counted from when it was armed. */
  readonly when: number;
}

/** All points of these calls. */
export const callsOf = (
  thread: Thread,
  ...calls: readonly string[]
): readonly Pick<KillPoint, 'thread' | 'call'>[] => calls.map((call) => ({ thread, call }));

/** What happens at the call. */
export type Blow = 'killed' | 'full-once' | 'full-from-then-on';

/** A trap that is armed; disarmed, it lets the process go on undisturbed. */
export interface Trap {
  /**
   * Afterwards the process is gone, or has gone on: none is left that has yet to die of the trap.
   */
  disarm(): Promise<void>;
  /** Once it is disarmed: whether there was such a call. */
  isSprung(): boolean;
}

const EFFECTS: Readonly<Record<Blow, (when: number) => string>> = {
  killed: (when) => `signal=KILL:when=${when}`,
  'full-once': (when) => `error=ENOSPC:when=${when}`,
  'full-from-then-on': (when) => `error=ENOSPC:when=${when}+`,
};
const ATTACH_POLL_MS = 2;
/** What is told of a process, or of a thread, that has ended meanwhile. */
const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH']);
/**
 * Threads of libuv's pool; there is one, since a daemon under test runs with UV_THREADPOOL_SIZE=1.
 */
const POOL_THREAD = 'libuv-worker';

/** The thread's id; undefined as long as it has not been started. */
export function findThread(pid: number, thread: Thread): number | undefined {
  if (thread === 'loop') return pid;
  return readdirSync(`/proc/${pid}/task`)
    .map(Number)
    .find((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim() === POOL_THREAD);
}

/**
 * Has the whole process killed (SIGKILL) when one of its threads enters that call, or has the call
 * fail as it does on a full disk (ENOSPC), this one or all of them from then on. strace counts
 * the calls of a thread by itself, which makes a point the same in each run.
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
      // What it tells of each call goes where what it says goes.
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
      // The end of a child is told with the next turn.
      await sleep(ATTACH_POLL_MS);
    },
  };
}

/**
 * A thread kills its process when it has its next turn, which on a busy machine is later than
 * strace ends: one that sleeps has had it.
 */
function isDecided(pid: number, id: number): boolean {
  const state = stateOf(pid, id);
  if (state === 'S') return true;
  return (state === undefined || state === 'Z') && threadsOf(pid) <= 1;
}

/** As in proc(5); undefined: there is no such thread. */
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
