import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { Shell } from './shell.ts';

const bin = join(import.meta.dirname, '../../../node_modules/.bin');
const NAMESPACES = ['--net', '--mount', '--uts', '--pid', '--propagation=private'];
const SHELL = ['--fork', '--kill-child', '--mount-proc', 'bash', '--norc'];
/** Folders whose changes stay in the host's own directory. */
const OWN = ['/etc', '/root', '/srv', '/var/lib', '/var/log'];

/**
 * Replaces two commands of systemd, which is not the first process here. It starts and stops the
 * real daemon; `start` returns when the daemon answers.
 */
const SYSTEMCTL = `systemctl() {
  case $* in
    'start gnt-noded' | 'enable --now gnt-noded')
      gnt-noded 2>>/var/log/gnt-noded.log &
      noded=$!
      for try in $(seq 300); do
        gnt-node info >/dev/null 2>&1 && return
        kill -0 $noded 2>/dev/null || break
        sleep 0.2
      done
      tail -n 3 /var/log/gnt-noded.log; gnt-node info; return 1 ;;
    'stop gnt-noded') kill $noded && wait $noded ;;
    *) echo "systemctl $* is not known here"; return 2 ;;
  esac
}`;

/**
 * A shell on a separate host: names, network, processes and the folders that gnt writes belong to
 * the shell. The programs and the rest of the file system are those of this machine. Pages run with
 * `GNT_ROOT` unset, as for an operator. All processes end with the shell.
 */
export class OwnHost extends Shell {
  readonly #directory: string;

  private constructor(directory: string) {
    super(['unshare', ...NAMESPACES, ...SHELL]);
    this.#directory = directory;
  }

  static async boot(name: string): Promise<OwnHost> {
    const directory = await mkdtemp('/tmp/gnt-host-');
    const host = new OwnHost(directory);
    await host.#must('mount -t sysfs sysfs /sys && mount -t tmpfs -o mode=755 tmpfs /run');
    for (const path of OWN) {
      const [upper, work] = ['upper', 'work'].map((kind) => join(directory, kind, path));
      const options = `lowerdir=${path},upperdir=${upper},workdir=${work}`;
      await host.#must(
        `mkdir -p ${upper} ${work} && mount -t overlay overlay -o ${options} ${path}`,
      );
    }
    await host.#must(`mkdir /run/netns ${directory}/work-here && cd ${directory}/work-here`);
    await host.#must(`ip link set lo up && hostname ${name}`);
    await host.#must(`unset GNT_ROOT; export HOME=/root PATH=${bin}:$PATH`);
    await host.#must(SYSTEMCTL);
    return host;
  }

  /** Connects two hosts by a cable, each with its address, such as 10.0.0.1/24. */
  static async connect(
    [one, address]: readonly [OwnHost, string],
    [other, otherAddress]: readonly [OwnHost, string],
  ): Promise<void> {
    const [pid, otherPid] = [await one.#innerPid(), await other.#innerPid()];
    const link = ['link', 'add', 'eth0', 'netns', String(pid), 'type', 'veth'];
    await run('ip', [...link, 'peer', 'name', 'eth0', 'netns', String(otherPid)]);
    await one.#must(`ip addr add ${address} dev eth0 && ip link set eth0 up`);
    await other.#must(`ip addr add ${otherAddress} dev eth0 && ip link set eth0 up`);
  }

  /** Returns the pid of the shell itself in this machine's namespace. */
  async #innerPid(): Promise<number> {
    const text = await readFile(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
    return Number(text.trim());
  }

  async #must(command: string): Promise<void> {
    const { status, lines } = await this.run(command);
    if (status !== 0) throw new Error(`${command}\n${lines.join('\n')}`);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
