import { pause } from '#shared/abort/until.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { tieToDaemon } from '../../../host/child-supervisor.ts';

/** How long callers wait for a command. The command itself has no time limit. */
export interface Patience {
  readonly readMs: number;
  readonly changeMs: number;
}

/**
 * Runs the commands of a volume system. INVARIANTS: no command is killed unless it is tied to the
 * daemon, since a killed change leaves an unknown state. While a command outlasts its caller's
 * wait, no other begins, so that each change starts from a known state.
 */
export interface BoundCommands {
  /** @throws AppError COMMAND_TIMEOUT, CommandFailed */
  read(command: string, args: readonly string[]): Promise<string>;
  /** @throws AppError COMMAND_TIMEOUT: its outcome is unknown; CommandFailed */
  change(command: string, args: readonly string[], how?: Change): Promise<string>;
}

export interface Change {
  /** Milliseconds to wait beyond the usual time. */
  readonly moreMs?: number;
  /**
   * The command may be interrupted and ends with this daemon. The next daemon repeats it and must
   * not run beside it.
   */
  readonly isTiedToDaemon?: boolean;
}

/** The volume system, for messages. */
export type CommandsOf = keyof typeof HINTS;

/** Exit status of env(1) if the program is missing. */
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
      const first = await Promise.race([running, pause(waitMs, enough.signal)]);
      if (typeof first !== 'boolean') return first.stdout;
    } finally {
      enough.abort();
    }
    overdue.add(begun);
    // The caller already got COMMAND_TIMEOUT.
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

function tooLong({ what }: Begun, waitMs: number, of: CommandsOf): AppError {
  const message = `${what} is still running after ${waitMs / 1000} s`;
  return new AppError('COMMAND_TIMEOUT', message, { details: { command: what }, hint: HINTS[of] });
}

function stillThere({ what, atMs }: Begun, of: CommandsOf): AppError {
  const seconds = Math.round((performance.now() - atMs) / 1000);
  const message = `${what} was started ${seconds} s ago and is still running: refusing to start another command for ${of}`;
  return new AppError('COMMAND_TIMEOUT', message, { details: { command: what }, hint: HINTS[of] });
}
