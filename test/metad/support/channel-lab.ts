import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceView } from '#shared/contract/view.ts';
import { run } from '#shared/process/run.ts';

/** nobody: metad must need nothing but its directory. */
export const METAD_UID = 65_534;
/** The same on every host, so that a migrated guest still reaches it. */
const HOST_MAC = '02:67:6e:74:00:01';
const READY_TIMEOUT_MS = 20_000;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Reads a whole answer of any length. */
export async function readAnswer(incoming: IncomingMessage): Promise<Answer> {
  const { statusCode: status = 0, headers } = incoming;
  return { status, headers, body: await buffer(incoming) };
}

export interface Guest {
  readonly namespace: string;
  /** Runs a command in the guest's network namespace; returns its output on success. */
  run(command: string, ...args: string[]): Promise<string>;
}

export interface GuestLink {
  readonly device: string;
  readonly mac: string;
  readonly ip: string;
  /** Leaves the guest's side without an address, for DHCP clients. */
  readonly isUnconfigured?: boolean;
}

let labs = 0;

function contentSocketArguments(directory: string): readonly string[] {
  return ['--content-socket', join(directory, 'content.sock')];
}

/**
 * A channel namespace with the real metad in it, and a network namespace per guest, joined by veth
 * pairs.
 */
export class ChannelLab implements AsyncDisposable {
  readonly namespace: string;
  readonly directory: string;
  readonly controlSocket: string;
  readonly contentSocket: string;
  #log = '';
  #metad: ChildProcess | undefined;
  readonly #namespaces: string[] = [];

  readonly #program: readonly string[];

  private constructor(name: string, directory: string, program: readonly string[]) {
    this.#program = program;
    this.namespace = name;
    this.directory = directory;
    this.controlSocket = join(directory, 'control.sock');
    this.contentSocket = join(directory, 'content.sock');
  }

  /**
   * @param programArguments of metad beside its control socket; by default those of the node daemon
   * @param file its program; by default its sources
   */
  static async create(
    programArguments: (directory: string) => readonly string[] = contentSocketArguments,
    file = 'metad/main.ts',
  ): Promise<ChannelLab> {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-metad-test-'));
    await chown(directory, METAD_UID, METAD_UID);
    const lab = new ChannelLab(`gnttest-${process.pid}-${labs++}`, directory, [
      file,
      ...programArguments(directory),
    ]);
    try {
      await lab.#addNamespace(lab.namespace);
      const setting = 'net.ipv4.ip_unprivileged_port_start=53';
      await lab.#inNamespace(lab.namespace, 'sysctl', '-qw', setting);
      await lab.startMetad();
    } catch (error) {
      // Without a caller, nothing would end the lab, and the test file would hang.
      await lab[Symbol.asyncDispose]();
      throw error;
    }
    return lab;
  }

  /** The whole log of metad so far. */
  get log(): string {
    return this.#log;
  }

  /** Returns and clears metad's log since the last call. */
  takeLog(): string {
    const log = this.#log;
    this.#log = '';
    return log;
  }

  /** Waits for a complete line that contains a text, and returns it. */
  async logLine(text: string, timeoutMs = READY_TIMEOUT_MS): Promise<string> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const line = this.#log
        .split('\n')
        .slice(0, -1)
        .find((candidate) => candidate.includes(text));
      if (line !== undefined) return line;
      if (Date.now() > deadline) throw new Error(`metad never logged ${text}`);
      await sleep(20);
    }
  }

  get metadPid(): number {
    return this.#metad?.pid ?? 0;
  }

  async startMetad(): Promise<void> {
    const id = String(METAD_UID);
    const program = [
      ...['nsenter', `--net=/run/netns/${this.namespace}`, '--'],
      ...['setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--no-new-privs'],
      ...['--bounding-set=-all', '--inh-caps=-all', '--'],
      ...[process.execPath, ...this.#program, '--log-level', 'debug'],
      ...['--control-socket', this.controlSocket],
    ];
    const child = spawn(program[0] ?? '', program.slice(1), {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#metad = child;
    const deadline = Date.now() + READY_TIMEOUT_MS;
    for (;;) {
      const answer = await this.control('GET', '/v1/status').catch(() => null);
      if (answer?.status === 200) return;
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`metad did not start: ${this.#log}`);
      }
      await sleep(50);
    }
  }

  /** @returns its exit status, or the signal's name */
  async stopMetad(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string | null> {
    const child = this.#metad;
    this.#metad = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null)
      return child?.exitCode ?? child?.signalCode ?? null;
    const ended = new Promise<number | string | null>((resolve) => {
      child.once('exit', (code, by) => resolve(code ?? by));
    });
    child.kill(signal);
    return await ended;
  }

  /**
   * Adds a guest's own namespace, with `eth0` as the other end of a device in the channel's
   * namespace.
   */
  async addGuest(link: GuestLink): Promise<Guest> {
    const namespace = `${this.namespace}-g${this.#namespaces.length}`;
    await this.#addNamespace(namespace);
    await this.connect(namespace, link);
    return {
      namespace,
      run: async (command, ...args) => await this.#inNamespace(namespace, command, ...args),
    };
  }

  async connect(namespace: string, link: GuestLink): Promise<void> {
    const { device, mac, ip } = link;
    await run('ip', [
      ...['-n', this.namespace, 'link', 'add', device, 'address', HOST_MAC, 'type', 'veth'],
      ...['peer', 'name', 'eth0', 'address', mac, 'netns', namespace],
    ]);
    await this.#configure(link);
    // A link-local address with DAD is tentative for seconds, and unusable for the guest's own
    // requests.
    await this.#inNamespace(namespace, 'sysctl', '-qw', 'net.ipv6.conf.eth0.accept_dad=0');
    await run('ip', ['-n', namespace, 'link', 'set', 'eth0', 'up']);
    if (link.isUnconfigured) return;
    await run('ip', ['-n', namespace, 'addr', 'add', `${ip}/16`, 'dev', 'eth0']);
  }

  /** Connects a guest of another lab to this one's end of its wire. */
  async takeOver(from: ChannelLab, link: GuestLink): Promise<void> {
    await from.ip('link', 'set', link.device, 'netns', this.namespace);
    await this.#configure(link);
  }

  async #configure({ device, ip, mac }: GuestLink): Promise<void> {
    const host = this.namespace;
    await run('ip', ['-n', host, 'addr', 'add', '169.254.169.254/32', 'dev', device]);
    await run('ip', ['-n', host, 'addr', 'add', 'fe80::a9fe:a9fe/64', 'dev', device, 'nodad']);
    await run('ip', ['-n', host, 'link', 'set', device, 'up']);
    await run('ip', ['-n', host, 'route', 'append', `${ip}/32`, 'dev', device]);
    await run('ip', [
      ...['-n', host, 'neigh', 'replace', ip, 'lladdr', mac, 'dev', device, 'nud', 'permanent'],
    ]);
  }

  /** Runs `ip` in the channel's namespace. */
  async ip(...args: string[]): Promise<void> {
    await run('ip', ['-n', this.namespace, ...args]);
  }

  async disconnect(device: string): Promise<void> {
    await run('ip', ['-n', this.namespace, 'link', 'del', device]);
  }

  async control(
    method: string,
    path: string,
    body?: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        { socketPath: this.controlSocket, method, path, headers, agent: false },
        (incoming) => {
          resolve(readAnswer(incoming));
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  /** @param query `?guest=up`: of a guest that was started before */
  async put(view: InstanceView, query: '' | '?guest=up' = ''): Promise<Answer> {
    return await this.control('PUT', `/v1/instances/${view.uuid}${query}`, JSON.stringify(view));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopMetad();
    for (const namespace of this.#namespaces) await run('ip', ['netns', 'del', namespace]);
    await rm(this.directory, { recursive: true });
  }

  async #addNamespace(name: string): Promise<void> {
    await run('ip', ['netns', 'add', name]);
    this.#namespaces.push(name);
    await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  }

  async #inNamespace(namespace: string, command: string, ...args: string[]): Promise<string> {
    const { stdout } = await run('ip', ['netns', 'exec', namespace, command, ...args]);
    return stdout;
  }
}
