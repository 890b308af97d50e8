import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { GuestSystem } from '../../metad/support/guest-system.ts';
import { infoOf } from './ask-nodes.ts';

const DEVICE = 'agent-guest';
const POLL_MS = 50;
const ENABLE = 'curl -s http://169.254.169.254/ganeti/latest/guest/enable | sh';
/** Matches every frame with u32, because the kernel may lack other classifiers. */
const EVERY_FRAME = ['protocol', 'all', 'u32', 'match', 'u32', '0', '0', 'action', 'mirred'];

/**
 * A guest in two parts. The machine is QEMU with 512 bytes of a system, so that the node sees
 * resets and poweroffs. The network and the agent are a namespace of this host, whose frames pass
 * through the TAP of the machine. The machine follows the commands to the guest's system.
 */
export class AgentGuest implements AsyncDisposable {
  readonly #lab: Lab;
  readonly #name: string;
  readonly #namespace: string;
  readonly system: GuestSystem;
  #isDisposed = false;
  #obeying: Promise<void> = Promise.resolve();

  private constructor(lab: Lab, name: string, namespace: string, system: GuestSystem) {
    this.#lab = lab;
    this.#name = name;
    this.#namespace = namespace;
    this.system = system;
  }

  static async create(lab: Lab, name: string): Promise<AgentGuest> {
    const namespace = `${lab.paths.networkNamespace}-agent`;
    await run('ip', ['netns', 'add', namespace]);
    await run('ip', ['-n', namespace, 'link', 'set', 'lo', 'up']);
    const kind = { shell: 'dash', downloader: 'curl' } as const;
    return new AgentGuest(lab, name, namespace, await GuestSystem.create(namespace, kind));
  }

  /**
   * Boots the guest of a running machine. It reboots or powers off when its agent requests that.
   */
  async boot(): Promise<void> {
    await this.#connect();
    await this.system.boot(ENABLE);
    this.#obeying = this.#obey();
  }

  /** Waits until the guest has powered off by itself. */
  async wentOff(): Promise<void> {
    await this.#obeying;
  }

  async #obey(): Promise<void> {
    while (!this.#isDisposed) {
      const word = await this.system.read('went-down');
      const isHeld = (await this.system.read('hold.power')) !== null;
      if (word === null || isHeld) {
        await sleep(POLL_MS);
        continue;
      }
      await this.system.stop();
      await this.system.remove('went-down');
      await this.#type(word === 'reboot\n' ? 'r' : 'o');
      if (word !== 'reboot\n') return;
      await this.system.boot(ENABLE);
    }
  }

  async #type(letter: string): Promise<void> {
    const { uuid } = await infoOf(this.#lab, this.#name);
    const socket = connect(join(this.#lab.paths.vmDir, uuid, 'console'));
    await once(socket, 'connect');
    socket.end(letter);
    socket.resume();
    await once(socket, 'close');
  }

  async #connect(): Promise<void> {
    const { ip, mac } = (await infoOf(this.#lab, this.#name)).channel;
    const host = this.#lab.paths.networkNamespace;
    const { stdout: links } = await run('ip', ['-n', host, '-o', 'link']);
    const [, device, hostMac] = /(gnt\.com\.\d+):.* link\/ether (\S+)/.exec(links) ?? [];
    if (device === undefined || hostMac === undefined)
      throw new Error(`${this.#name} has no TAP: ${links}`);
    await run('ip', ['-n', host, 'link', 'del', DEVICE]).catch(() => undefined);
    const peer = ['peer', 'name', 'eth0', 'address', mac, 'netns', this.#namespace];
    // The same MAC, because the kernel would drop frames for another MAC before they reach the TAP.
    await run('ip', ['-n', host, 'link', 'add', DEVICE, 'address', hostMac, 'type', 'veth', ...peer]); // prettier-ignore
    await run('ip', ['-n', host, 'link', 'set', DEVICE, 'up']);
    await run('ip', ['-n', this.#namespace, 'link', 'set', 'eth0', 'up']);
    await run('ip', ['-n', this.#namespace, 'addr', 'add', `${ip}/16`, 'dev', 'eth0']);
    const tc = (...args: string[]): Promise<unknown> => run('tc', ['-n', host, ...args]);
    for (const one of [DEVICE, device]) await tc('qdisc', 'replace', 'dev', one, 'clsact');
    await tc('filter', 'add', 'dev', DEVICE, 'ingress', ...EVERY_FRAME, 'ingress', 'redirect', 'dev', device); // prettier-ignore
    await tc('filter', 'add', 'dev', device, 'egress', ...EVERY_FRAME, 'egress', 'redirect', 'dev', DEVICE); // prettier-ignore
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await this.system[Symbol.asyncDispose]();
    await this.#obeying.catch(() => undefined);
    await run('ip', ['netns', 'del', this.#namespace]);
  }
}
