import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceView } from '#shared/contract/view.ts';
import { residentBytes } from './measurement.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';

const PUTS_AT_ONCE = 8;
const START_TIMEOUT_MS = 20_000;

/** A process with metad's modules whose guests are on loopback: see metad-host.ts. */
export class MetadHost implements AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Size of all its views. */
  viewBytes = 0;
  readonly #child: ChildProcess;
  readonly #directory: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PUTS_AT_ONCE });

  private constructor(port: number, child: ChildProcess, directory: string) {
    this.port = port;
    this.pid = child.pid ?? 0;
    this.#child = child;
    this.#directory = directory;
  }

  static async start(port: number): Promise<MetadHost> {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-bench-'));
    const program = join(import.meta.dirname, 'metad-host.ts');
    const child = spawn(
      process.execPath,
      ['--expose-gc', program, controlSocket(directory), String(port)],
      {
        stdio: 'ignore',
      },
    );
    const host = new MetadHost(port, child, directory);
    try {
      await host.#ready();
      return host;
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** @returns the resident memory after a garbage collection */
  async heldBytes(): Promise<number> {
    process.kill(this.pid, 'SIGUSR2');
    // The answer comes after the collection.
    await this.#ask('GET', '/v1/status');
    return await residentBytes(this.pid);
  }

  async put(view: InstanceView): Promise<void> {
    const body = JSON.stringify(view);
    this.viewBytes += Buffer.byteLength(body);
    const status = await this.#ask('PUT', `/v1/instances/${view.uuid}`, body);
    if (status !== 204) throw new Error(`the view of ${view.name} was refused with ${status}`);
  }

  /** Sends the views of the first instances, several at a time. */
  async putAll(instances: number): Promise<void> {
    let next = 0;
    const putSome = async (): Promise<void> => {
      while (next < instances) await this.put(viewOf(next++));
    };
    await Promise.all(Array.from({ length: PUTS_AT_ONCE }, putSome));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    this.#child.kill('SIGKILL');
    await rm(this.#directory, { recursive: true });
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while ((await this.#ask('GET', '/v1/status').catch(() => 0)) !== 200) {
      if (this.#child.exitCode !== null || Date.now() > deadline) {
        throw new Error('metad-host.ts did not start');
      }
      await sleep(50);
    }
  }

  async #ask(method: string, path: string, body = ''): Promise<number> {
    const socketPath = controlSocket(this.#directory);
    return await new Promise((resolve, reject) => {
      const outgoing = request({ socketPath, method, path, agent: this.#agent }, (incoming) => {
        incoming.resume();
        incoming.on('end', () => resolve(incoming.statusCode ?? 0));
        incoming.on('error', reject);
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }
}

/** Returns the view of one of many instances. */
export function viewOf(index: number): InstanceView {
  const suffix = index.toString(16).padStart(12, '0');
  const mac = `52:54:00:${suffix.slice(6).replace(/(..)(?=.)/g, '$1:')}`;
  const view = exampleView();
  return {
    ...view,
    name: `web${index}.example.com`,
    uuid: `6aa7b544-1f3d-49e9-b2b7-${suffix}`,
    instanceId: `c5fe7f7b-3bf8-491f-9c11-${suffix}`,
    nics: view.nics.map((nic) => (nic.communication ? { ...nic, mac } : nic)),
    channel: { ...view.channel, device: `gnt.com.${index}`, mac, ip: channelAddress(index) },
    limits: { requestsPerSecond: 1e9, burst: 1e9, connections: 64 },
  };
}

/** Returns the address for connections of its guest. */
export function loopbackAddress(index: number): string {
  return channelAddress(index).replace('169.254.', '127.1.');
}

/** Returns 169.254.0.1 and up, without the address of the service, the network or the broadcast. */
function channelAddress(index: number): string {
  const host = index + 1 >= 169 * 256 + 254 ? index + 2 : index + 1;
  return `169.254.${host >> 8}.${host & 255}`;
}

function controlSocket(directory: string): string {
  return join(directory, 'control.sock');
}
