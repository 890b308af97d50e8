import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { endNamespace } from './end-namespace.ts';

export const SHELLS = ['dash', 'busybox ash', 'bash'] as const;
export const DOWNLOADERS = ['curl', 'GNU wget', 'busybox wget'] as const;

/** The agent's tools, except shell and download program. */
const TOOLS = [
  ...['cat', 'chmod', 'cp', 'env', 'head', 'id', 'mkdir', 'mkfifo', 'mv', 'rm', 'sed'],
  ...['setsid', 'sleep', 'sort', 'tail', 'timeout', 'tr', 'wc'],
];

export interface SystemKind {
  readonly shell: (typeof SHELLS)[number];
  readonly downloader: (typeof DOWNLOADERS)[number] | 'none';
  /** Debian's sysvinit: a private `/etc`, and `update-rc.d`. */
  readonly hasInitScripts?: boolean;
}

/**
 * The environment of a guest's agent without a VM: the guest's network, its own /run and /var/lib,
 * one shell, one download program, and no systemd.
 */
export class GuestSystem implements AsyncDisposable {
  readonly #directory: string;
  readonly #namespace: string;
  readonly #hasInitScripts: boolean;
  #main: ChildProcess | undefined;
  #log = '';

  private constructor(directory: string, namespace: string, hasInitScripts: boolean) {
    this.#directory = directory;
    this.#namespace = namespace;
    this.#hasInitScripts = hasInitScripts;
  }

  static async create(namespace: string, kind: SystemKind): Promise<GuestSystem> {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-guest-system-'));
    for (const name of ['bin', 'run', 'lib']) await mkdir(join(directory, name));
    const system = new GuestSystem(directory, namespace, kind.hasInitScripts ?? false);
    if (kind.hasInitScripts) {
      for (const level of ['0', '1', '2', '3', '4', '5', '6', 'S'])
        await mkdir(join(directory, `etc/rc${level}.d`), { recursive: true });
      await mkdir(join(directory, 'etc/init.d'));
      await system.add('update-rc.d');
    }
    await system.#link(kind);
    return system;
  }

  /** The agent's whole output. */
  get log(): string {
    return this.#log;
  }

  /** Boots the system with an empty /run; `script` stands for cloud-init's commands. */
  async boot(script: string): Promise<void> {
    await this.stop();
    await rm(join(this.#directory, 'run'), { recursive: true });
    await mkdir(join(this.#directory, 'run'));
    await writeFile(join(this.#directory, 'boot_id'), `${randomUUID()}\n`);
    this.start(script);
  }

  /** Runs a script in the present boot, and its children until `stop`. */
  start(script: string): void {
    const at = (name: string): string => join(this.#directory, name);
    const prepared = [
      `mount --bind ${at('run')} /run`,
      `mount --bind ${at('lib')} /var/lib`,
      `mount --bind ${at('boot_id')} /proc/sys/kernel/random/boot_id`,
      ...(this.#hasInitScripts ? [`mount --bind ${at('etc')} /etc`] : []),
      `PATH=${at('bin')}; export PATH`,
      // The signal of busybox' poweroff to the first process, which does not end.
      `trap 'echo poweroff >>/var/lib/went-down' USR2`,
      script,
      '/bin/sleep 100000 & while :; do wait $!; done',
    ].join('\n');
    const child = spawn(
      'ip',
      [
        ...['netns', 'exec', this.#namespace],
        ...['unshare', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child'],
        ...['/bin/sh', '-c', prepared],
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#main = child;
  }

  /** Kills all processes at once, as a power failure does. */
  async stop(): Promise<void> {
    const child = this.#main;
    this.#main = undefined;
    await endNamespace(child);
  }

  /** Returns a file below /var/lib; null without one. */
  async read(path: string): Promise<string | null> {
    return await readFile(join(this.#directory, 'lib', path), 'utf8').catch(() => null);
  }

  /** Installs a program of the host. */
  async add(program: string): Promise<void> {
    await symlink(await findProgram(program), join(this.#directory, 'bin', program));
  }

  /** Runs lines of sh, with the program's arguments, before a program's own work. */
  async delay(tool: string, lines: readonly string[]): Promise<void> {
    const path = join(this.#directory, 'bin', tool);
    const real = await readlink(path);
    await rm(path);
    await symlink(real, join(this.#directory, 'bin', `real-${tool}`));
    const script = ['#!/bin/sh', ...lines, `exec real-${tool} "$@"`, ''].join('\n');
    await writeFile(path, script, { mode: 0o755 });
  }

  /** Waits until the system was asked to power off or reboot, for four seconds at most. */
  async wentDown(): Promise<void> {
    // The file appears a moment before its content.
    for (let tries = 0; !(await this.read('went-down')) && tries < 200; tries++)
      await new Promise((resolve) => setTimeout(resolve, 20));
  }

  async write(path: string, text: string): Promise<void> {
    await writeFile(join(this.#directory, 'lib', path), text);
  }

  /** Writes a file below /run of the present boot. */
  async writeRun(path: string, text: string): Promise<void> {
    await writeFile(join(this.#directory, 'run', path), text);
  }

  async remove(path: string): Promise<void> {
    await rm(join(this.#directory, 'lib', path), { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true });
  }

  async #link({ shell, downloader }: SystemKind): Promise<void> {
    const bin = join(this.#directory, 'bin');
    const busybox = await findProgram('busybox');
    const isBusybox = shell === 'busybox ash';
    await symlink(
      isBusybox ? busybox : await findProgram(shell),
      join(bin, isBusybox ? 'ash' : 'sh'),
    );
    if (isBusybox) await symlink(busybox, join(bin, 'sh'));
    for (const tool of TOOLS)
      await symlink(isBusybox ? busybox : await findProgram(tool), join(bin, tool));
    if (downloader === 'curl') await this.add('curl');
    if (downloader === 'GNU wget') await this.add('wget');
    if (downloader === 'busybox wget') await symlink(busybox, join(bin, 'wget'));
    for (const word of ['poweroff', 'reboot'])
      await writeFile(join(bin, word), `#!/bin/sh\necho ${word} >>/var/lib/went-down\n`, {
        mode: 0o755,
      });
  }
}

async function findProgram(name: string): Promise<string> {
  return (await run('/bin/sh', ['-c', `command -v ${name}`])).stdout.trim();
}
