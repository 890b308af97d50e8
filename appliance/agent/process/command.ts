import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Shells add this to the number of the signal that ended a program. */
const ENDED_BY_SIGNAL = 128;

export interface CommandResult {
  /** After a signal, 128 plus its number, as in a shell: see `signalOf`. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly more: readonly string[];
}

/** Kept output of one command; tools of the appliance print far less. */
const MAX_KEPT_BYTES = MIB;

export interface CommandOptions {
  readonly input?: string;
  /** Descriptor that receives the standard output, in place of the result. */
  readonly stdout?: number;
  readonly onStdout?: (text: string) => void;
  /** Number of additional output descriptors, from 3 on. */
  readonly moreOutputs?: number;
}

/** Runs a tool of the appliance to its end. Minimal on purpose: a library would cost boot time. */
export function tryCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const outputs = Array.from({ length: 2 + (options.moreOutputs ?? 0) }, () => 'pipe' as const);
    const child = spawn(command, args, {
      env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
      stdio: [
        options.input === undefined ? 'ignore' : 'pipe',
        options.stdout ?? 'pipe',
        ...outputs.slice(1),
      ],
    });
    goFirst(child.pid);
    const kept = outputs.map(() => '');
    for (const index of outputs.keys()) {
      // The type of `stdio` does not tell readable from writable.
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
    // A tool may end before it has read everything. Its status decides.
    child.stdin?.on('error', () => undefined);
    if (options.input !== undefined) child.stdin?.end(options.input);
  });
}

/**
 * Makes the kernel kill the tool instead of the agent when memory runs out: a tool's input may make
 * it use all memory, and the agent must report that.
 * @param pid undefined when the tool was not started
 */
function goFirst(pid: number | undefined): void {
  try {
    if (pid !== undefined) writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes(systemCodeOf(error) ?? '')) throw error;
  }
}

/** @returns the signal in a status; undefined for a normal exit */
export function signalOf(status: number): string | undefined {
  const [name] =
    Object.entries(constants.signals).find(([, number]) => status === ENDED_BY_SIGNAL + number) ??
    [];
  return name;
}

/** @throws AppError COMMAND_FAILED with the last line of the tool's stderr. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const result = await tryCommand(command, args, options);
  if (result.status !== 0) {
    throw commandFailure(`${command} ${args.join(' ')}`, result);
  }
  return result.stdout;
}

/**
 * @param what the attempted action
 * @returns AppError COMMAND_FAILED with the tool's last line, or the signal that ended it
 */
export function commandFailure(what: string, { status, stdout, stderr }: CommandResult): AppError {
  const signal = signalOf(status);
  const said = lastLineOf(stderr) || lastLineOf(stdout) || `exit status ${status}`;
  const reason = signal === undefined ? said : endedBySignal(signal);
  return new AppError('COMMAND_FAILED', `${what}: ${reason}`);
}

/** Describes a signal. The kernel kills a program when memory runs out. */
export function endedBySignal(signal: string): string {
  const why = signal === 'SIGKILL' ? 'it needed more memory than the appliance has' : 'it crashed';
  return `it was killed by ${signal}: ${why}`;
}
