import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { type CommandOptions, type CommandResult, tryCommand } from '../process/command.ts';
import { HeldNamespace, PERL, planConfineCommand } from '../process/held-namespace.ts';

/** Image and disk as the tools in there see them. */
export const JAILED_IMAGE = '/image';
export const JAILED_DISK = '/disk';

/**
 * Where tools read images: a root directory with programs and libraries, read-only, and two more
 * names, the image and the disk that it is written to. Whatever else an image tells a tool to open is not there.
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

  async run(
    program: string,
    args: readonly string[],
    options?: CommandOptions,
  ): Promise<CommandResult> {
    return await tryCommand(PERL, this.#plan([program, ...args]), options);
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
