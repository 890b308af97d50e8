import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, rmdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { newerDebianTree } from '../../lab/debian-releases.ts';
import { endNamespace } from './end-namespace.ts';
import { GuestTree } from './guest-tree.ts';

/** Units that need a VM, or the network that the guest's namespace has already. */
const MASKED = [
  ...['cloud-init-main', 'cloud-init-local', 'cloud-init-network', 'cloud-config', 'cloud-final'],
  ...['NetworkManager', 'ssh', 'systemd-networkd', 'systemd-networkd-wait-online', 'systemd-udevd'],
].map((name) => `${name}.service`);

/**
 * Debian 13's systemd as the first process of its own namespaces, on a disk without a VM. Its
 * shutdown ends that process.
 */
export class SystemdGuest implements AsyncDisposable {
  readonly #tree: GuestTree;
  readonly #cgroup: string;
  #init: ChildProcess | undefined;
  #log = '';

  private constructor(tree: GuestTree, cgroup: string) {
    this.#tree = tree;
    this.#cgroup = cgroup;
  }

  /** @param script is run as a unit of multi-user.target in each boot */
  static async create(namespace: string, script: string): Promise<SystemdGuest> {
    const mounts = await readFile('/proc/mounts', 'utf8');
    const [, hierarchy] = /^\S+ (\S+) cgroup2 /m.exec(mounts) ?? [];
    if (hierarchy === undefined) throw new Error('systemd needs a cgroup2 hierarchy');
    const cgroup = join(hierarchy, `gnt-test-${process.pid}`);
    const tree = await GuestTree.create(await newerDebianTree('trixie'), namespace);
    const units = join(tree.root, 'etc/systemd/system');
    await tree.write('enable', script);
    await tree.write('etc/systemd/system/at-boot.service', AT_BOOT);
    await mkdir(join(units, 'multi-user.target.wants'), { recursive: true });
    await symlink('../at-boot.service', join(units, 'multi-user.target.wants/at-boot.service'));
    for (const unit of MASKED) {
      await rm(join(units, unit), { force: true });
      await symlink('/dev/null', join(units, unit));
    }
    await mkdir(cgroup);
    return new SystemdGuest(tree, cgroup);
  }

  /** The output of systemd. */
  get log(): string {
    return this.#log;
  }

  async boot(): Promise<void> {
    await this.#end();
    const { root, namespace } = this.#tree;
    const enter = `echo $$ >${this.#cgroup}/cgroup.procs
exec ip netns exec ${namespace} unshare --mount --pid --uts --ipc --cgroup --fork --kill-child sh -c '${initScript(root)}'`;
    const child = spawn('sh', ['-c', enter], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#init = child;
  }

  /** Runs a command as root; the log has its output. */
  async run(command: string): Promise<void> {
    await this.#tree.write('command', `${command}\n`);
    const child = this.#init;
    // The guest's first process is the only child of unshare.
    const inside = `init=$(cat /proc/${child?.pid}/task/${child?.pid}/children); exec nsenter -t $init -a chroot ${this.#tree.root} sh /command`;
    const asked = spawn('sh', ['-c', inside], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [asked.stdout, asked.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    await once(asked, 'close');
  }

  /** Waits until the guest has shut down. */
  async ended(timeoutMs: number): Promise<void> {
    const child = this.#init;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    await once(child, 'exit', { signal: AbortSignal.timeout(timeoutMs) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    await this.#tree[Symbol.asyncDispose]();
    await removeGroup(this.#cgroup);
  }

  async #end(): Promise<void> {
    const child = this.#init;
    this.#init = undefined;
    await endNamespace(child);
  }
}

const AT_BOOT = `[Service]
Type=oneshot
ExecStart=/bin/sh /enable
`;

/** Each boot gets a new boot id. The script must not contain quotes, since it is quoted itself. */
function initScript(root: string): string {
  return `set -e
mount -t proc proc ${root}/proc
mount -t sysfs sysfs ${root}/sys
mount -t cgroup2 none ${root}/sys/fs/cgroup
for name in run tmp dev; do mount -t tmpfs tmpfs ${root}/$name; done
for name in null zero full random urandom tty; do
  touch ${root}/dev/$name
  mount --bind /dev/$name ${root}/dev/$name
done
cat /proc/sys/kernel/random/uuid >${root}/run/boot_id
mount --bind ${root}/run/boot_id ${root}/proc/sys/kernel/random/boot_id
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot ${root} /lib/systemd/systemd --unit=multi-user.target --log-target=console`;
}

/** The kernel releases a group some moments after its last process. */
async function removeGroup(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await removeGroup(join(path, entry.name));
  for (let tries = 0; ; tries++)
    try {
      return await rmdir(path);
    } catch (error) {
      if (tries > 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
}
