import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import { MIB } from '#shared/units/bytes.ts';

/** What a shell adds to the number of the signal that ended a program. */
const ENDED_BY_SIGNAL = 128;

export interface CommandResult {
  /** Of one that a signal ended, 128 and its number, as a shell tells it: see `signalOf`. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What came out of `moreOutputs`, in their order. */
  readonly more: readonly string[];
}

/** Output that is kept of one command, in bytes; tools of the appliance print far less. */
const MAX_KEPT_BYTES = MIB;

export interface CommandOptions {
  /** What the command reads on its standard input. */
  readonly input?: string;
  /** Sees stdout as it comes. */
  readonly onStdout?: (text: string) => void;
  /** Descriptors from 3 on that it writes to as well. */
  readonly moreOutputs?: number;
}

/**
 * Runs a tool of the appliance to its end and returns its status. Small on purpose: a library for
 * it costs boot time.
 */
export function tryCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const outputs = Array.from({ length: 2 + (options.moreOutputs ?? 0) }, () => 'pipe' as const);
    const child = spawn(command, args, {
      env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
      stdio: [options.input === undefined ? 'ignore' : 'pipe', ...outputs],
    });
    const kept = outputs.map(() => '');
    for (const index of outputs.keys()) {
      // Its type does not say that what it writes to is read here.
      const output = child.stdio[1 + index] as Readable | null;
      output?.setEncoding('utf8').on('data', (text: string) => {
        if (index === 0) options.onStdout?.(text);
        if ((kept[index]?.length ?? 0) < MAX_KEPT_BYTES) kept[index] += text;
      });
    }
    child.on('error', reject);
    child.on('close', (status, signal) => {
      const [stdout = '', stderr = '', ...more] = kept;
      const ended = status ?? ENDED_BY_SIGNAL + (signal === null ? 0 : constants.signals[signal]);
      resolve({ status: ended, stdout, stderr, more });
    });
    if (options.input !== undefined) child.stdin?.end(options.input);
  });
}

/** @returns the signal that ended a program, by its status; undefined when it ended by itself */
export function signalOf(status: number): string | undefined {
  const [name] =
    Object.entries(constants.signals).find(([, number]) => status === ENDED_BY_SIGNAL + number) ??
    [];
  return name;
}

/** @throws AppError COMMAND_FAILED with the last line that the tool wrote to stderr. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const result = await tryCommand(command, args, options);
  if (result.status !== 0) {
    const reason = result.stderr.trim().split('\n').at(-1) || `exit status ${result.status}`;
    throw new AppError('COMMAND_FAILED', `${command} ${args.join(' ')}: ${reason}`);
  }
  return result.stdout;
}
