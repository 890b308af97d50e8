import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { tieToDaemon } from '../../../host/child-supervisor.ts';

/** How long somebody waits for a command, which has no bound itself. */
export interface Patience {
  readonly readMs: number;
  readonly changeMs: number;
}

/**
 * INVARIANTS: none of them is ever killed but those that may be, since what was killed in the
 * middle of a change leaves something of which nobody knows what it is; while one has not ended for
 * which somebody has stopped to wait, no other begins: what is changed next is looked at after it.
 */
export interface BoundCommands {
  /** @throws AppError COMMAND_TIMEOUT, CommandFailed */
  read(command: string, args: readonly string[]): Promise<string>;
  /**
   * @throws AppError COMMAND_TIMEOUT: nobody knows yet what becomes of it; CommandFailed
   */
  change(command: string, args: readonly string[], how?: Change): Promise<string>;
}

export interface Change {
  /** What it may take longer than any other command. */
  readonly moreMs?: number;
  /**
   * It may be ended at any time, and is with this daemon: the next one, which does it again, must
   * not find it at work behind its own.
   */
  readonly isTiedToDaemon?: boolean;
}

/** Whose commands, for those who wait for them. */
export type CommandsOf = keyof typeof HINTS;

/** Status of a command that begins by `env` where there is no such program (env(1)). */
export const NOT_FOUND = 127;

const PATIENCE: Patience = { readMs: 30_000, changeMs: 180_000 };
const ENVIRONMENT = { LVM_SUPPRESS_FD_WARNINGS: '1' };
const AGAIN = 'gnt does not end it: wait until it has ended, and repeat the command';
const HINTS = {
  LVM: `Check the device below it (journalctl -k, dmsetup info) and other LVM commands that hold a lock (ps -C lvm); ${AGAIN}`,
  ZFS: `Check the device below it (journalctl -k) and whether the pool is suspended (zpool status); ${AGAIN}`,
} as const;

interface Begun {
  readonly what: string;
  readonly atMs: number;
}

export function createBoundCommands(
  of: CommandsOf = 'LVM',
  patience: Patience = PATIENCE,
): BoundCommands {
  const overdue = new Set<Begun>();
  const start = async (
    command: string,
    args: readonly string[],
    waitMs: number,
    isTiedToDaemon = false,
  ): Promise<string> => {
    for (const begun of overdue) throw stillThere(begun, of);
    const begun = { what: `${command} ${args[0] ?? ''}`, atMs: performance.now() };
    const plan = isTiedToDaemon ? tieToDaemon(command, args) : { command, args };
    const running = run(plan.command, plan.args, { env: ENVIRONMENT, timeoutMs: null });
    const enough = new AbortController();
    try {
      const first = await Promise.race([running, outlast(waitMs, enough.signal)]);
      if (first !== null) return first.stdout;
    } finally {
      enough.abort();
    }
    overdue.add(begun);
    // Whoever asked has been told already.
    const forget = (): void => void overdue.delete(begun);
    void running.then(forget, forget);
    throw tooLong(begun, waitMs, of);
  };
  return {
    read: (command, args) => start(command, args, patience.readMs),
    change: (command, args, { moreMs = 0, isTiedToDaemon } = {}) =>
      start(command, args, patience.changeMs + moreMs, isTiedToDaemon),
  };
}

/** @returns null when the time is over */
async function outlast(ms: number, signal: AbortSignal): Promise<null> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return null;
}

function tooLong({ what }: Begun, waitMs: number, of: CommandsOf): AppError {
  const message = `${what} is still running after ${waitMs / 1000} s`;
  return new AppError('COMMAND_TIMEOUT', message, { details: { command: what }, hint: HINTS[of] });
}

function stillThere({ what, atMs }: Begun, of: CommandsOf): AppError {
  const seconds = Math.round((performance.now() - atMs) / 1000);
  const message = `${what} was started ${seconds} s ago and is still running: refusing to start another command for ${of}`;
  return new AppError('COMMAND_TIMEOUT', message, { details: { command: what }, hint: HINTS[of] });
}
