import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { QmpClient, type QmpEvent } from '../../../noded/vmm/qmp-client.ts';
import { readProcFile } from '../../../noded/host/process-facts.ts';

const BRIDGE = 'br0';
/** Without a fixed address, the bridge takes that of a link, and links come and go. */
const BRIDGE_MAC = '02:67:6e:74:00:02';
const READY_TIMEOUT_MS = 20_000;
const STEP_TIMEOUT_MS = 120_000;
const POLL_MS = 20;
/** As in vmm/machine-migration.ts and cluster/migration/plan-migration.ts. */
const CAPABILITIES = ['events', 'pause-before-switchover', 'auto-converge'];
const PARAMETERS = { 'max-bandwidth': 2 ** 34, 'downtime-limit': 300 };

/** Arguments of QEMU. Copies replace the files of its descriptors. */
export interface MachineModel {
  readonly words: readonly string[];
  readonly diskBytes: number;
}

/**
 * Returns the arguments of a running QEMU process, with paths of copies in place of its
 * descriptors.
 */
export async function modelOf(
  pid: number,
  directory: string,
  diskBytes: number,
): Promise<MachineModel> {
  const words = (readProcFile(pid, 'cmdline') ?? '').split('\0').slice(0, -1);
  const copied: string[] = [];
  for (const word of words) {
    const [, fd] = /\/proc\/self\/fd\/(\d+)/.exec(word) ?? [];
    if (fd === undefined) copied.push(word);
    else {
      const copy = join(directory, `fd${fd}`);
      await copyFile(`/proc/${pid}/fd/${fd}`, copy);
      copied.push(word.replace(/\/proc\/self\/fd\/\d+/, copy));
    }
  }
  const named = copied.filter(
    (word, index) => word !== '-add-fd' && copied[index - 1] !== '-add-fd',
  );
  return { words: named, diskBytes };
}

/** Creates a bridge for the TAPs, with the address of the metadata service. */
export async function addLink(namespace: string): Promise<void> {
  const ip = (...words: string[]) => run('ip', ['-n', namespace, ...words]);
  await run('ip', ['netns', 'add', namespace]);
  await ip('link', 'set', 'lo', 'up');
  await ip('link', 'add', BRIDGE, 'address', BRIDGE_MAC, 'type', 'bridge', 'forward_delay', '0');
  await ip('addr', 'add', '169.254.169.254/16', 'dev', BRIDGE);
  await ip('link', 'set', BRIDGE, 'up');
}

let machines = 0;

/** A QEMU process without gnt-noded. */
export class BareMachine {
  readonly #directory: string;
  readonly #process: ChildProcess;
  readonly #events: { readonly name: string; readonly data: QmpEvent['data'] }[] = [];
  readonly #heard = new Set<() => void>();
  #qmp: QmpClient | undefined;

  private constructor(directory: string, child: ChildProcess) {
    this.#directory = directory;
    this.#process = child;
  }

  /** @param kind `waits` for an incoming migration */
  static async start(
    model: MachineModel,
    kind: 'boots' | 'waits',
    { namespace, folder }: { readonly namespace: string; readonly folder: string },
  ): Promise<BareMachine> {
    const directory = join(folder, `bare${(machines += 1)}`);
    const tap = `bare${machines}`;
    await mkdir(directory);
    await writeFile(join(directory, 'disk'), '');
    await truncate(join(directory, 'disk'), model.diskBytes);
    const words = model.words.map((word) =>
      word
        .replace(/(id=(qmp|console)),fd=\d+/, (_, id: string, name: string) => {
          return `${id},path=${join(directory, name)}`;
        })
        .replace('/dev/fdset/1', join(directory, 'console.log'))
        .replace('/dev/fdset/2', join(directory, 'disk'))
        .replace(/^tap,fd=\d+/, `tap,ifname=${tap},script=no,downscript=no`),
    );
    const waits = kind === 'waits' ? ['-S', '-incoming', 'defer'] : [];
    const child = spawn('ip', ['netns', 'exec', namespace, ...words, ...waits], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const machine = new BareMachine(directory, child);
    try {
      await machine.#connect();
      await run('ip', ['-n', namespace, 'link', 'set', tap, 'master', BRIDGE, 'up']);
      return machine;
    } catch (error) {
      await machine.end();
      throw error;
    }
  }

  /**
   * Migrates the guest, with each step right after QEMU reports the one before.
   * @param standing stop the guest before sending its memory
   * @returns the downtime as QEMU reports it, in milliseconds
   */
  async migrateTo(target: BareMachine, standing: boolean): Promise<number> {
    const disks = { type: 'unix', path: join(target.#directory, 'nbd') };
    const memory = `unix:${join(target.#directory, 'memory')}`;
    await target.#ask('nbd-server-start', { addr: { type: 'unix', data: { path: disks.path } } });
    await target.#ask('block-export-add', {
      ...{ type: 'nbd', id: 'export', name: 'disk0', 'node-name': 'disk0', writable: true },
    });
    await target.#setCapabilities();
    await target.#ask('migrate-incoming', { uri: memory });
    await this.#ask('blockdev-add', {
      ...{ driver: 'nbd', 'node-name': 'away', export: 'disk0', server: disks },
      ...{ 'detect-zeroes': 'unmap', discard: 'unmap' },
    });
    await this.#ask('blockdev-mirror', {
      ...{ 'job-id': 'mirror', device: 'disk0', target: 'away', sync: 'full' },
      ...{ 'copy-mode': 'write-blocking' },
    });
    await this.#hears('BLOCK_JOB_READY');
    if (standing) await this.#ask('stop');
    await this.#setCapabilities();
    await this.#ask('migrate-set-parameters', PARAMETERS);
    await this.#ask('migrate', { uri: memory });
    await this.#hears('MIGRATION', 'pre-switchover');
    await this.#ask('block-job-cancel', { device: 'mirror', force: false });
    await this.#hears('BLOCK_JOB_COMPLETED');
    await this.#ask('migrate-continue', { state: 'pre-switchover' });
    await target.#hears('MIGRATION', 'completed');
    await target.#ask('nbd-server-stop');
    await target.#ask('cont');
    await this.#hears('MIGRATION', 'completed');
    const { downtime } = z.object({ downtime: z.number() }).parse(await this.#ask('query-migrate'));
    return downtime;
  }

  async end(): Promise<void> {
    this.#qmp?.close();
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }

  async #connect(): Promise<void> {
    const deadlineMs = performance.now() + READY_TIMEOUT_MS;
    for (;;) {
      try {
        this.#qmp = await QmpClient.connect({
          socketPath: join(this.#directory, 'qmp'),
          timeoutMs: READY_TIMEOUT_MS,
          onEvent: (event) => {
            this.#events.push(event);
            for (const listener of this.#heard) listener();
          },
        });
        return;
      } catch (error) {
        if (performance.now() > deadlineMs) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  async #setCapabilities(): Promise<void> {
    const capabilities = CAPABILITIES.map((capability) => ({ capability, state: true }));
    await this.#ask('migrate-set-capabilities', { capabilities });
  }

  async #ask(command: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    if (this.#qmp === undefined) throw new Error('QEMU does not answer yet');
    return this.#qmp.execute(command, args, STEP_TIMEOUT_MS);
  }

  /** Waits for an event, also for an earlier one. */
  async #hears(name: string, status?: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const late = setTimeout(() => reject(new Error(`no ${name} of QEMU`)), STEP_TIMEOUT_MS);
    const look = (): void => {
      const isThere = this.#events.some(
        (event) => event.name === name && (status === undefined || event.data['status'] === status),
      );
      if (isThere) resolve();
    };
    this.#heard.add(look);
    try {
      look();
      await promise;
    } finally {
      clearTimeout(late);
      this.#heard.delete(look);
    }
  }
}
