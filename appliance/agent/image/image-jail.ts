import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { AppError } from '#shared/errors/app-error.ts';
import {
  type CommandOptions,
  type CommandResult,
  endedBySignal,
  signalOf,
  tryCommand,
} from '../process/command.ts';
import { HeldNamespace, PERL, planConfineCommand } from '../process/held-namespace.ts';

export const JAILED_IMAGE = '/image';
export const JAILED_DISK = '/disk';

/** First descriptor for output of programs that run together; a shell supports up to 9. */
const FIRST_OUTPUT = 3;

/** Status of a program that the shell did not report. */
const NOT_BEGUN = 128;

/** Prefix of errors of the program that confines them. */
const NOT_STARTED = 'confine: ';

/**
 * Throws when a program could not be started or was killed.
 * @param stderr its output there
 * @throws AppError COMMAND_FAILED, IMAGE_INVALID
 */
export function refuseEnd(stderr: string, signal: string | undefined): void {
  // Errors of image tools never begin like this.
  if (stderr.startsWith(NOT_STARTED)) throw notStarted(stderr);
  if (signal === undefined) return;
  throw new AppError(
    'IMAGE_INVALID',
    `the program that reads the image failed: ${endedBySignal(signal)}`,
    {
      details: { signal },
      hint: 'Fetch the image again and compare its checksum. If it is correct, convert it to a plain image: qemu-img convert -O qcow2 OLD NEW',
    },
  );
}

function notStarted(stderr: string): AppError {
  const [reason = ''] = stderr.trim().split('\n');
  return new AppError(
    'COMMAND_FAILED',
    `the appliance cannot start the tools that read images: ${reason}`,
    { hint: 'The image is not the cause. Rebuild the appliance: gnt-appliance build' },
  );
}

/**
 * A root directory for image tools: programs and libraries, read-only, and the image and its target
 * disk. Files that an image refers to are absent.
 */
export class ImageJail implements AsyncDisposable {
  readonly #namespace: HeldNamespace;

  private constructor(namespace: HeldNamespace) {
    this.#namespace = namespace;
  }

  /**
   * @param imagePath a block device, of which the jail gets its own node; in tests a file that the
   * tools' user can access
   * @param diskPath the same for the disk; null without a disk
   */
  static async open(imagePath: string, diskPath: string | null): Promise<ImageJail> {
    return new ImageJail(await HeldNamespace.openJail(imagePath, diskPath));
  }

  /**
   * @throws AppError COMMAND_FAILED when it cannot be started, IMAGE_INVALID when a signal ended it
   */
  async run(
    program: string,
    args: readonly string[],
    options?: CommandOptions,
  ): Promise<CommandResult> {
    const result = await tryCommand(PERL, this.#plan([program, ...args]), options);
    refuseEnd(result.stderr, signalOf(result.status));
    return result;
  }

  /**
   * Runs up to three programs in parallel. One shell starts them, since entering the jail takes
   * longer than most of them. They are not isolated from each other.
   * @throws AppError COMMAND_FAILED when they cannot be started, IMAGE_INVALID, as `run`
   */
  async runTogether<const T extends readonly (readonly string[])[]>(
    programs: T,
  ): Promise<{ [Each in keyof T]: CommandResult }> {
    const plan = this.#plan(['/bin/sh', '-c', planTogether(programs)]);
    const moreOutputs = 2 * programs.length;
    const { status, stdout, stderr, more } = await tryCommand(PERL, plan, { moreOutputs });
    // The shell succeeds however its programs end. Its own stderr is not theirs.
    if (status !== 0) throw notStarted(stderr || `the shell ended with ${status}`);
    const statuses = stdout.split('\n');
    const results = programs.map((_, index) => ({
      // A program without a status line was not started.
      status: Number(statuses[index] || NOT_BEGUN),
      stdout: more[2 * index] ?? '',
      stderr: more[2 * index + 1] || stderr,
      more: [],
    }));
    for (const result of results) refuseEnd('', signalOf(result.status));
    // One result for each program.
    return results as { [Each in keyof T]: CommandResult };
  }

  start(program: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn(PERL, this.#plan(program));
  }

  #plan(program: readonly string[]): readonly string[] {
    const holder = String(this.#namespace.holderPid);
    return planConfineCommand('nobody', holder, '', '/', '', '', '', ...program);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#namespace[Symbol.asyncDispose]();
  }
}

/** Returns a script that gives each program its own outputs, and prints their statuses. */
function planTogether(programs: readonly (readonly string[])[]): string {
  const quote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  const starts = programs.map((program, index) => {
    const output = FIRST_OUTPUT + 2 * index;
    return `${program.map(quote).join(' ')} >&${output} 2>&${output + 1} & jobs="$jobs $!"`;
  });
  return ['jobs=', ...starts, 'for job in $jobs; do wait "$job"; echo $?; done'].join('\n');
}
