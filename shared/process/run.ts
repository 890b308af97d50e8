import { execa } from 'execa';
import { AppError } from '../errors/app-error.ts';
import { lastLineOf } from '../text/lines.ts';
import { MIB } from '../units/bytes.ts';
import { SYSTEM_PATH } from './system-path.ts';

export interface RunOptions {
  readonly input?: string | Uint8Array;
  /**
   * Kills the command and its descendants after this many milliseconds. Null: the command also
   * outlives this process, and ignores SIGPIPE when its output is gone.
   */
  readonly timeoutMs?: number | null;
  readonly signal?: AbortSignal;
  /** The whole environment of the child: nothing is inherited except PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * MIB;
/** By coreutils, since Node starts children with default signal handling. */
const DEAF_TO_PIPES = ['env', '--ignore-signal=PIPE'] as const;

/** A host command that failed. */
export class CommandFailed extends AppError {
  /** Null when it could not be started, or was killed. */
  readonly exitStatus: number | null;
  /** The end of its standard error. */
  readonly stderr: string;

  constructor(message: string, { command, args, exitStatus, stderr, cause }: CommandFailedFields) {
    const details = { command, args: [...args], exitStatus, stderr };
    super('COMMAND_FAILED', message, { details, cause });
    this.exitStatus = exitStatus;
    this.stderr = stderr;
  }
}

interface CommandFailedFields {
  readonly command: string;
  readonly args: readonly string[];
  readonly exitStatus: number | null;
  readonly stderr: string;
  readonly cause: unknown;
}

/**
 * Runs a host command to its end, without a shell.
 * @throws CommandFailed with the last line of stderr; AppError COMMAND_TIMEOUT; or the signal's
 * reason.
 */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  const timeoutMs = options.timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : options.timeoutMs;
  const isLeftAlone = timeoutMs === null;
  const [file, ...rest] = isLeftAlone ? [...DEAF_TO_PIPES, command, ...args] : [command, ...args];
  const result = await execa(file, rest, {
    reject: false,
    extendEnv: false,
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C', ...options.env },
    ...(isLeftAlone ? { cleanup: false } : { timeout: timeoutMs, killDescendants: true }),
    maxBuffer: MAX_OUTPUT_BYTES,
    ...(options.input === undefined ? { stdin: 'ignore' as const } : { input: options.input }),
    ...(options.signal && { cancelSignal: options.signal }),
    ...(options.cwd && { cwd: options.cwd }),
  });
  options.signal?.throwIfAborted();
  const { stdout, stderr } = result;
  if (!isLeftAlone && result.timedOut) {
    throw new AppError('COMMAND_TIMEOUT', `${command} did not end within ${timeoutMs / 1000} s`, {
      details: { command, args: [...args] },
    });
  }
  if (result.failed) {
    const reason = lastLineOf(stderr) || result.shortMessage;
    throw new CommandFailed(`${command} ${args[0] ?? ''}: ${reason}`, {
      command,
      args,
      exitStatus: result.exitCode ?? null,
      stderr: stderr.slice(-4000),
      cause: result,
    });
  }
  return { stdout, stderr };
}
