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

/** Image and disk as the tools in there see them. */
export const JAILED_IMAGE = '/image';
export const JAILED_DISK = '/disk';

/** First descriptor for output of programs that run together; a shell knows no more than 9. */
const FIRST_OUTPUT = 3;

/** How one ended that the shell said nothing of. */
const NOT_BEGUN = 128;

/** What the program says first that confines them. */
const NOT_STARTED = 'confine: ';

/**
 * What became of a program that has ended, if it could not be started or did not end by itself.
 * @param stderr what it said there
 * @throws AppError COMMAND_FAILED, IMAGE_INVALID
 */
export function refuseEnd(stderr: string, signal: string | undefined): void {
  // No tool that reads an image begins its complaints so.
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

/** The appliance's failure, and none of the image's. */
function notStarted(stderr: string): AppError {
  const [reason = ''] = stderr.trim().split('\n');
  return new AppError(
    'COMMAND_FAILED',
    `the appliance cannot start the tools that read images: ${reason}`,
    { hint: 'The image is not the cause. Rebuild the appliance: gnt-appliance build' },
  );
}

/**
 * Where tools read images: a root directory with programs and libraries, read-only, and two more
 * names, the image and the disk that it is written to. Whatever else an image tells a tool to open
 * is not there.
 */
export class ImageJail implements AsyncDisposable {
  readonly #namespace: HeldNamespace;

  private constructor(namespace: HeldNamespace) {
    this.#namespace = namespace;
  }

  /**
   * @param imagePath and the other: block devices, of which the jail gets nodes of its own; in
   * tests files that the tools' user may use
   * @param diskPath null where nothing is written
   */
  static async open(imagePath: string, diskPath: string | null): Promise<ImageJail> {
    return new ImageJail(await HeldNamespace.openJail(imagePath, diskPath));
  }

  /**
   * @throws AppError COMMAND_FAILED when it could not be started, IMAGE_INVALID when a signal ended
   * it
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
   * Runs up to three programs side by side. One shell starts them, since to get into the jail takes
   * longer than most of what they do. They are not kept from each other.
   * @throws AppError COMMAND_FAILED when they could not be started, IMAGE_INVALID, as `run`
   */
  async runTogether<const T extends readonly (readonly string[])[]>(
    programs: T,
  ): Promise<{ [Each in keyof T]: CommandResult }> {
    const plan = this.#plan(['/bin/sh', '-c', planTogether(programs)]);
    const moreOutputs = 2 * programs.length;
    const { status, stdout, stderr, more } = await tryCommand(PERL, plan, { moreOutputs });
    // It ends well however its programs do, and what it says itself is none of theirs.
    if (status !== 0) throw notStarted(stderr || `the shell ended with ${status}`);
    const statuses = stdout.split('\n');
    const results = programs.map((_, index) => ({
      // Without a line of its own it was not even started.
      status: Number(statuses[index] || NOT_BEGUN),
      stdout: more[2 * index] ?? '',
      stderr: more[2 * index + 1] || stderr,
      more: [],
    }));
    for (const result of results) refuseEnd('', signalOf(result.status));
    // One of each program.
    return results as { [Each in keyof T]: CommandResult };
  }

  /** Starts a program whose input and output are streams. */
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

/** A script whose programs have outputs of their own, and which prints how each ended. */
function planTogether(programs: readonly (readonly string[])[]): string {
  const quote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  const starts = programs.map((program, index) => {
    const output = FIRST_OUTPUT + 2 * index;
    return `${program.map(quote).join(' ')} >&${output} 2>&${output + 1} & jobs="$jobs $!"`;
  });
  return ['jobs=', ...starts, 'for job in $jobs; do wait "$job"; echo $?; done'].join('\n');
}
