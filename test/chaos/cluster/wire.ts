import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';

/** Name of the TAP in each host's namespace. */
export const WIRE_DEVICE = 'wire0';
const PROGRAM = join(import.meta.dirname, 'wire-process.ts');
const BIN = join(import.meta.dirname, '../../../node_modules/.bin');
/** Large frames, because each frame takes a system call in two processes. */
const MTU = '9000';
/** The pending read of each end occupies a thread. */
const THREADS = '8';

const wireState = z.object({ isCut: z.boolean(), delayMs: z.number().nonnegative() });
export type WireState = z.infer<typeof wireState>;
const wireWord = z.object({ end: z.number().int(), state: wireState });

export function parseWireState(line: string): z.infer<typeof wireWord> {
  return wireWord.parse(JSON.parse(line));
}

/** A host: a network namespace with one address on the shared network. */
export interface WiredHost {
  readonly address: string;
  /** Folder with wrappers that run this checkout's programs in the host's network. */
  readonly programs: string;
  /** Path to the host's own mounts from outside. */
  readonly mounts: string;
  /** Command prefix that runs another program in the host. */
  readonly enter: readonly string[];
  /** Cuts or delays the host's traffic from now on. */
  setWire(state: Partial<WireState>): void;
}

/**
 * Creates a host's own mounts and names of network namespaces, and keeps the namespaces open until
 * it is killed.
 */
const HOLD = [
  'mount -t sysfs sysfs /sys',
  'mount -t tmpfs -o mode=755 tmpfs /run',
  'mkdir /run/netns',
  'echo ready',
  'exec sleep infinity',
].join(' && ');

/** Hosts on a shared network with cuttable and slowable links, and a capture of all frames. */
export class Wire implements AsyncDisposable {
  readonly hosts: readonly WiredHost[];
  readonly #namespaces: readonly string[];
  readonly #processes: readonly ChildProcess[];

  private constructor(
    hosts: readonly WiredHost[],
    namespaces: readonly string[],
    processes: readonly ChildProcess[],
  ) {
    this.hosts = hosts;
    this.#namespaces = namespaces;
    this.#processes = processes;
  }

  /** @param capture file for all frames; the folders with programs are created in `folder` */
  static async start(count: number, folder: string, capture: string): Promise<Wire> {
    const namespaces = Array.from(
      { length: count },
      (_, index) => `gnt-wire-${process.pid}-${index + 1}`,
    );
    for (const name of namespaces) await run('ip', ['netns', 'add', name]);
    const wire = spawn(process.execPath, [PROGRAM, capture, ...namespaces], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, UV_THREADPOOL_SIZE: THREADS },
    });
    await once(wire.stdout, 'data');
    const processes: ChildProcess[] = [wire];
    const hosts = await Promise.all(
      namespaces.map(async (name, end): Promise<WiredHost> => {
        const address = `10.77.0.${end + 1}`;
        await setUp(name, address);
        const say = (state: Partial<WireState>): void => {
          const word = { end, state: { isCut: false, delayMs: 0, ...state } };
          wire.stdin.write(`${JSON.stringify(word)}\n`);
        };
        const holder = spawn(
          'nsenter',
          [`--net=/run/netns/${name}`, 'unshare', '--mount', '--propagation=slave', 'sh', '-ec', HOLD],
          { stdio: ['ignore', 'pipe', 'inherit'] },
        ); // prettier-ignore
        await once(holder.stdout, 'data');
        processes.push(holder);
        const enter = ['nsenter', '--target', String(holder.pid), '--net', '--mount'];
        const folderOf = join(folder, `programs-${end + 1}`);
        await writePrograms(folderOf, enter);
        const mounts = `/proc/${holder.pid}/root`;
        return { address, programs: folderOf, mounts, enter, setWire: say };
      }),
    );
    return new Wire(hosts, namespaces, processes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#processes) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    for (const name of this.#namespaces) await run('ip', ['netns', 'del', name]);
  }
}

async function setUp(namespace: string, address: string): Promise<void> {
  const inside = (...words: string[]): Promise<unknown> => run('ip', ['-n', namespace, ...words]);
  await inside('link', 'set', 'lo', 'up');
  await inside('link', 'set', WIRE_DEVICE, 'mtu', MTU);
  await inside('address', 'add', `${address}/24`, 'dev', WIRE_DEVICE);
  await inside('link', 'set', WIRE_DEVICE, 'up');
  // For NICs of instances.
  await inside('link', 'add', 'br0', 'type', 'bridge');
  await inside('link', 'set', 'br0', 'up');
}

async function writePrograms(folder: string, enter: readonly string[]): Promise<void> {
  await mkdir(folder);
  for (const name of (await readdir(BIN)).filter((program) => program.startsWith('gnt-'))) {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\nexec ${enter.join(' ')} ${join(BIN, name)} "$@"\n`);
    await chmod(path, 0o755);
  }
}
