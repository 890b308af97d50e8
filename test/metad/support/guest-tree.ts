import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '#shared/process/run.ts';

const TIMEOUT_MS = 180_000;

/**
 * The disk of a guest without a VM: an overlay on a cached root. Programs run on it in the guest's
 * network namespace, and in their own namespaces for the rest.
 */
export class GuestTree implements AsyncDisposable {
  readonly #directory: string;
  readonly #namespace: string;

  private constructor(directory: string, namespace: string) {
    this.#directory = directory;
    this.#namespace = namespace;
  }

  static async create(tree: string, namespace: string): Promise<GuestTree> {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-guest-'));
    // An overlay's upper layer cannot lie on an overlay, which a container's /tmp may be.
    await run('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', directory]);
    for (const name of ['upper', 'work', 'root']) await mkdir(join(directory, name));
    const layers = ['upper', 'work'].map((name) => `${name}dir=${join(directory, name)}`);
    const options = [`lowerdir=${tree}`, ...layers].join(',');
    await run('mount', ['-t', 'overlay', '-o', options, 'overlay', join(directory, 'root')]);
    return new GuestTree(directory, namespace);
  }

  /** The mount point of its disk. */
  get root(): string {
    return join(this.#directory, 'root');
  }

  get namespace(): string {
    return this.#namespace;
  }

  /** Runs a shell script as the first process of the guest. @returns its output */
  async run(script: string): Promise<string> {
    await this.write('boot.sh', script);
    const { stdout } = await run(
      'ip',
      [
        ...['netns', 'exec', this.#namespace],
        ...['unshare', '--mount', '--pid', '--uts', '--ipc', '--fork', '--kill-child'],
        ...['chroot', this.root, '/bin/sh', '/boot.sh'],
      ],
      { timeoutMs: TIMEOUT_MS },
    );
    return stdout;
  }

  /** Writes an executable file. */
  async write(path: string, content: string | Buffer): Promise<void> {
    const target = join(this.root, path);
    await mkdir(dirname(target), { recursive: true });
    // An existing path may be a link out of the tree.
    await rm(target, { force: true });
    await writeFile(target, content, { mode: 0o755 });
  }

  /** Reads a file of the guest's disk; null without one. */
  async read(path: string): Promise<string | null> {
    return await readFile(join(this.root, path), 'utf8').catch(() => null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('umount', [this.root]);
    await run('umount', [this.#directory]);
    await rm(this.#directory, { recursive: true });
  }
}
