import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { planBaseRules, planTapRules } from '../../noded/net/channel/nft-rules.ts';
import { applyNftCommands } from '../../noded/net/channel/nft.ts';
import { startContentServer } from '../../noded/net/metad-link/content-server.ts';
import { ROLE } from '../lab/cloud-lab.ts';
import { openIdentityLab } from '../lab/identity-lab.ts';
import { ChannelLab } from '../metad/support/channel-lab.ts';
import type { Guest } from '../metad/support/channel-lab.ts';
import { exampleView, installingView } from '../metad/support/view-fixture.ts';
import { instanceRecord } from '../noded/support/records.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { watchMemory, watchNeighbour } from './observers.ts';
import type { NeighbourReport } from './neighbour.ts';

/** Effects of a flood on others. Times in milliseconds, memory in MiB. */
export interface Fairness {
  readonly flood: string;
  readonly quietP50: number;
  readonly quietP99: number;
  readonly p50: number;
  readonly p99: number;
  readonly slowest: number;
  readonly requests: number;
  readonly failures: readonly string[];
  readonly metadMib: number;
  /** Maximum number of the node's descriptors for images and packages. */
  readonly nodeStreams: number;
  /** Maximum latency of the control socket. */
  readonly statusMs: number;
  readonly counts: string;
  /** The flood failed before its end. */
  readonly hasBroken: boolean;
}

const IMAGE_BYTES = 64 * 1024 * 1024;
const FLOOD = join(import.meta.dirname, 'flood-process.ts');
const STATUS_EVERY_MS = 250;
const MAX_QUIET_S = 60;
const END_PATIENCE_MS = 3000;
const ASK_EVERY_MS = 5;
const run = promisify(execFile);

/**
 * A guest that floods a real metad behind the node's packet filter and content server, its
 * neighbour, and the node that queries metad.
 */
export class FairnessLab implements AsyncDisposable {
  readonly #lab: ChannelLab;
  readonly #attacker: Guest;
  readonly #neighbour: Guest;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: { lab: ChannelLab; attacker: Guest; neighbour: Guest },
    stack: AsyncDisposableStack,
  ) {
    this.#lab = parts.lab;
    this.#attacker = parts.attacker;
    this.#neighbour = parts.neighbour;
    this.#stack = stack;
  }

  static async create(): Promise<FairnessLab> {
    await using stack = new AsyncDisposableStack();
    const lab = stack.use(await ChannelLab.create());
    const image = join(lab.directory, 'image');
    await writeFile(image, '');
    await truncate(image, IMAGE_BYTES);
    const uuidOf = (index: number): string => `00000000-1f3d-49e9-b2b7-00000000000${index}`;
    const records = [0, 1].map((index) => instanceRecord({}, { uuid: uuidOf(index) }));
    const signer = stack.use(await openIdentityLab(systemClock, records));
    // Its failures are answers too.
    const sts = 'https://127.0.0.1:1/';
    await signer.configure({ policy: 'yes', aws: { sts, role: ROLE } });
    const server = await startContentServer({
      socketPath: lab.contentSocket,
      gid: 65_534,
      clock: systemClock,
      content: {
        openImage: async () => Promise.resolve({ path: image, sizeBytes: IMAGE_BYTES }),
        openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
        openPackage: async () =>
          Promise.resolve({ stream: Readable.from(endless()), sizeBytes: null }),
        findBootTree: async () => undefined,
        openMirror: async () => Promise.resolve(undefined),
        issueToken: (uuid, query, cloud) =>
          cloud === null
            ? signer.identities.issue(uuid, query)
            : signer.credentials.issue(uuid, cloud),
        findService: async () => Promise.resolve(undefined),
      },
      logger: silentLogger,
    });
    stack.defer(async () => await server.close());
    const filter = `/run/netns/${lab.namespace}`;
    await applyNftCommands(filter, planBaseRules());
    const add = async (index: number): Promise<Guest> => {
      const mac = `52:54:00:e1:a3:6${index}`;
      const channel = {
        device: `gnt.com.${index}`,
        mac,
        ip: `169.254.8.${index + 1}`,
        hopLimit: 1,
      };
      const make = index === 0 ? installingView : exampleView;
      const view = make({
        name: `guest${index}.example.com`,
        uuid: uuidOf(index),
        identity: { aws: { role: ROLE } },
        nics: [],
        channel,
        userData: Buffer.alloc(512 * 1024, 'user-data ').toString('base64'),
        limits: DEFAULT_LIMITS,
      });
      const guest = await lab.addGuest(channel);
      await applyNftCommands(filter, planTapRules(channel.device, channel));
      const { status } = await lab.put(view);
      if (status !== 204) throw new Error(`metad refused the view: ${status}`);
      return guest;
    };
    // Measure metad's handling of a flood, not the kernel's scheduling on two processors. So metad
    // and the neighbour have real-time priority over the attacker, whose guest would have its own
    // processor, and over other tests. With nice values instead, one request in a hundred waits
    // tens of milliseconds for a processor, with or without a flood. The priority does not help
    // metad: the neighbour still waits for metad's work for the attacker.
    await run('chrt', ['--fifo', '--all-tasks', '--pid', '1', `${lab.metadPid}`]);
    const attacker = await add(0);
    const neighbour = await add(1);
    return new FairnessLab({ lab, attacker, neighbour }, stack.move());
  }

  /** Measures the neighbour without a flood for at most a minute, then with one. */
  async measure(flood: string, seconds: number): Promise<Fairness> {
    const quiet = await this.#watch(Math.min(seconds, MAX_QUIET_S));
    const child = spawn(process.execPath, [FLOOD, flood, this.#attacker.namespace], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const counts = text(child.stdout);
    const ended = once(child, 'exit');
    const stop = new AbortController();
    const [neighbour, memory, nodeStreams, statusMs] = await Promise.all([
      this.#watch(seconds).finally(() => {
        stop.abort();
        child.stdin.end();
      }),
      watchMemory(this.#lab.metadPid, stop.signal),
      this.#watchStreams(stop.signal),
      this.#watchControl(stop.signal),
    ]);
    // A flood at full speed may not notice the end of its stdin.
    const timer = setTimeout(() => child.kill('SIGKILL'), END_PATIENCE_MS);
    // The type follows Node's documentation of the event. A killed process has no status.
    const [status] = (await ended) as [number | null];
    clearTimeout(timer);
    return {
      flood,
      quietP50: quantile(quiet.latencies, 0.5),
      quietP99: quantile(quiet.latencies, 0.99),
      p50: quantile(neighbour.latencies, 0.5),
      p99: quantile(neighbour.latencies, 0.99),
      slowest: quantile(neighbour.latencies, 1),
      requests: neighbour.latencies.length,
      failures: neighbour.failures,
      metadMib: memory.highest,
      nodeStreams,
      statusMs,
      counts: await counts,
      hasBroken: status !== null && status !== 0,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #watch(seconds: number): Promise<NeighbourReport> {
    const { instanceId } = exampleView();
    const signal = AbortSignal.timeout(Math.round(seconds * 1000));
    return await watchNeighbour(this.#neighbour.namespace, instanceId, signal, {
      everyMs: ASK_EVERY_MS,
      isUrgent: true,
    });
  }

  async #watchStreams(signal: AbortSignal): Promise<number> {
    let most = 0;
    while (!signal.aborted) {
      most = Math.max(most, (await readdir('/proc/self/fd')).length);
      await pause(STATUS_EVERY_MS, signal);
    }
    return most;
  }

  async #watchControl(signal: AbortSignal): Promise<number> {
    let longest = 0;
    while (!signal.aborted) {
      const startedAtMs = performance.now();
      await this.#lab.control('GET', '/v1/status');
      longest = Math.max(longest, performance.now() - startedAtMs);
      // Reading the queue keeps room for the guest's writes.
      await this.#lab.control('GET', '/v1/instances/00000000-1f3d-49e9-b2b7-000000000000/queue');
      await pause(STATUS_EVERY_MS, signal);
    }
    return longest;
  }
}

function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(64 * 1024);
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
}

export function quantile(ascending: readonly number[], q: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(q * ascending.length))] ?? 0;
}

const MAX_METAD_MIB = 300;
/**
 * Limits for the neighbour's p99 and median in milliseconds. A neighbour that is slower without a
 * flood may take MAX_RATIO times its own value.
 */
const MAX_P99_MS = 5;
const MAX_P50_MS = 2;
const MAX_RATIO = 2;
const MAX_STATUS_MS = 5000;
const MAX_NODE_DESCRIPTORS = 100;

/**
 * Returns the problems of a measurement.
 * @param ratio limit of the neighbour's latency with a flood relative to that without
 */
export function judge(seen: Fairness, ratio = MAX_RATIO): readonly string[] {
  const problems: string[] = [];
  const check = (isRight: boolean, text: string): void => {
    if (!isRight) problems.push(`${seen.flood}: ${text}`);
  };
  check(!seen.hasBroken, 'the flood itself has broken off');
  for (const failure of new Set(seen.failures)) check(false, `the neighbour got ${failure}`);
  check(
    seen.p50 <= Math.max(MAX_P50_MS, ratio * seen.quietP50),
    `the neighbour’s median is ${seen.p50.toFixed(1)} ms, ${seen.quietP50.toFixed(1)} ms without the flood`,
  );
  check(
    seen.p99 <= Math.max(MAX_P99_MS, ratio * seen.quietP99),
    `the neighbour’s p99 is ${seen.p99.toFixed(1)} ms, ${seen.quietP99.toFixed(1)} ms without the flood`,
  );
  check(seen.metadMib <= MAX_METAD_MIB, `metad had ${seen.metadMib.toFixed(0)} MiB`);
  check(seen.statusMs <= MAX_STATUS_MS, `the control socket took ${seen.statusMs.toFixed(0)} ms`);
  check(seen.nodeStreams <= MAX_NODE_DESCRIPTORS, `the node had ${seen.nodeStreams} descriptors`);
  return problems;
}

export function describe(seen: Fairness): string {
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  return [
    seen.flood.padEnd(12),
    `quiet p50 ${ms(seen.quietP50)}, p99 ${ms(seen.quietP99)}; p50 ${ms(seen.p50)}, p99 ${ms(seen.p99)}, slowest ${ms(seen.slowest)}`,
    `${seen.requests} requests, ${seen.failures.length} failed`,
    `metad ${seen.metadMib.toFixed(0)} MiB, node ${seen.nodeStreams} descriptors, control ${ms(seen.statusMs)}`,
    seen.counts,
  ].join(' | ');
}
