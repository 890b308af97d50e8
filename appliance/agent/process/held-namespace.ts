import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { AppError } from '#shared/errors/app-error.ts';
import { commandFailure, tryCommand } from './command.ts';
import { CONFINE_PROGRAM } from './confine-program.ts';

const COMMAND_PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
export const PERL = '/usr/bin/perl';

/** Arguments of one program: of the longest paths, half of the kernel's limit. */
const PATHS_AT_ONCE = 256;

/** Commands that mount a namespace's file systems, and the root directory in it. */
export interface NamespaceDescription {
  readonly script: string;
  readonly root: string;
}

export function planConfineCommand(mode: string, ...args: readonly string[]): readonly string[] {
  return ['-e', CONFINE_PROGRAM, '--', process.arch, mode, ...args];
}

/**
 * A mount namespace without the agent. It lasts as long as its holder, a child of the agent that
 * ends with it.
 */
export class HeldNamespace implements AsyncDisposable {
  readonly #holder: ChildProcess;
  readonly holderPid: number;

  private constructor(holder: ChildProcess, holderPid: number) {
    this.#holder = holder;
    this.holderPid = holderPid;
  }

  /** @throws AppError COMMAND_FAILED; the console has the reason */
  static async open({ script, root }: NamespaceDescription): Promise<HeldNamespace> {
    return await HeldNamespace.#start('hold', script, root);
  }

  /**
   * Opens a namespace in which image tools find only programs, libraries, `/image` and `/disk`.
   * @param diskPath null without a disk
   * @throws AppError COMMAND_FAILED; the console has the reason
   */
  static async openJail(imagePath: string, diskPath: string | null): Promise<HeldNamespace> {
    return await HeldNamespace.#start('jail', imagePath, diskPath ?? '');
  }

  static async #start(...mode: [string, ...string[]]): Promise<HeldNamespace> {
    const holder = spawn(PERL, planConfineCommand(...mode), {
      env: { PATH: COMMAND_PATH, LC_ALL: 'C' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(holder, 'exit').then(() => null);
    const said: unknown = await Promise.race([once(holder.stdout, 'data'), ended]);
    if (said === null || holder.pid === undefined)
      throw new AppError('COMMAND_FAILED', 'cannot create a mount namespace for programs');
    return new HeldNamespace(holder, holder.pid);
  }

  /** Shows a path, and the mounts below it, at another path inside. */
  async attach(from: string, to: string): Promise<void> {
    await this.#call('attach', from, to);
  }

  /** Removes the mounts at these paths inside, if present. */
  async detach(paths: readonly string[]): Promise<void> {
    for (let at = 0; at < paths.length; at += PATHS_AT_ONCE)
      await this.#call('detach', ...paths.slice(at, at + PATHS_AT_ONCE));
  }

  /** Its mounts end with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#holder, 'exit');
    this.#holder.stdin?.end();
    await ended;
  }

  async #call(mode: string, ...args: readonly string[]): Promise<void> {
    const result = await tryCommand(
      PERL,
      planConfineCommand(mode, String(this.holderPid), ...args),
    );
    if (result.status !== 0) throw commandFailure(`${mode} ${args.join(' ')}`, result);
  }
}
