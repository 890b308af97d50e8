import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceView } from '#shared/contract/view.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { UNACKNOWLEDGED_MS } from '../../metad/channel/accept-options.ts';
import { planBaseRules, planTapRules } from '../../noded/net/channel/nft-rules.ts';
import { applyNftCommands } from '../../noded/net/channel/nft.ts';
import { ChannelLab } from '../metad/support/channel-lab.ts';
import type { Guest } from '../metad/support/channel-lab.ts';
import { createSeededRandom } from '../lab/seeded-random.ts';
import { exampleView } from '../metad/support/view-fixture.ts';
import { crawl, flood, fuzz, pipeline } from './attackers.ts';
import type { Attacker } from './attackers.ts';
import { residentMib, watchMemory, watchNeighbour } from './observers.ts';
import type { NeighbourReport } from './neighbour.ts';
import type { MemoryReport } from './observers.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Names of ATTACKERS. */
  readonly attacks: readonly string[];
  readonly say: (line: string) => void;
}

export interface SoakReport {
  readonly summary: readonly string[];
  readonly problems: readonly string[];
}

/** Attacks by the name of their guest. */
export const ATTACKERS: Readonly<Record<string, Attacker>> = {
  fuzz,
  slow: crawl,
  pipeline,
  flood,
  'second-flood': flood,
};
const NEIGHBOUR = 'neighbour';
/** Limit for a neighbour on a host that attackers and other work keep busy. */
const MAX_P99_MS = 2000;
/** Without a leak, the minimum of Node's heap varies by this much in a minute. */
const MAX_GROWTH_MIB = 64;
const MAX_RESIDENT_MIB = 300;
/** metad's longest timeout, for connections of a guest that disappeared, and a margin. */
const SETTLE_MS = UNACKNOWLEDGED_MS + 15_000;
const SAY_EVERY_MS = 10_000;
const NO_LIMITS = { requestsPerSecond: 1e6, burst: 1e6, connections: DEFAULT_LIMITS.connections };

interface Party {
  readonly view: InstanceView;
  readonly guest: Guest;
}

/**
 * Runs hostile guests against one metad behind the node's packet filter, and reports on metad and
 * the guests' neighbour.
 */
export async function runSoak({ seconds, seed, attacks, say }: SoakOptions): Promise<SoakReport> {
  await using lab = await ChannelLab.create();
  const parties = await addParties(lab);
  const counts = new Map<string, Map<string, number>>();
  const problems = new Set<string>();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), seconds * 1000);
  const { signal } = stop;
  const attacking = Object.entries(ATTACKERS).map(async ([name, attacker], index) => {
    if (!attacks.includes(name)) return;
    const own = new Map<string, number>();
    counts.set(name, own);
    await attacker({
      namespace: parties.get(name)?.guest.namespace ?? '',
      random: createSeededRandom(seed + index).below,
      signal,
      count: (what, by = 1) => own.set(what, (own.get(what) ?? 0) + by),
      problem: (text) => problems.add(`${name}: ${text}`),
    });
  });
  const victim = parties.get(NEIGHBOUR);
  if (!victim) throw new Error('there is no neighbour');
  const pid = lab.metadPid;
  const observations = Promise.all([
    watchNeighbour(victim.guest.namespace, victim.view.instanceId, signal),
    watchMemory(pid, signal),
    watchLog(lab, signal, problems),
    drainQueues(lab, parties, signal),
    sayProgress(pid, counts, signal, say),
    ...attacking,
  ]);
  const [neighbour, memory] = await observations.finally(() => clearTimeout(timer));
  await judge(lab, { pid, neighbour, memory, problems });
  return { summary: summarise(counts, neighbour, memory), problems: [...problems] };
}

async function addParties(lab: ChannelLab): Promise<ReadonlyMap<string, Party>> {
  const parties = new Map<string, Party>();
  const path = `/run/netns/${lab.namespace}`;
  await applyNftCommands(path, planBaseRules());
  for (const [index, name] of [...Object.keys(ATTACKERS), NEIGHBOUR].entries()) {
    const mac = `52:54:00:e1:a3:${(0x50 + index).toString(16)}`;
    const channel = { device: `gnt.com.${index}`, mac, ip: `169.254.7.${index + 1}`, hopLimit: 1 };
    const view = exampleView({
      name: `${name}.example.com`,
      uuid: `00000000-1f3d-49e9-b2b7-00000000000${index}`,
      instanceId: `00000000-3bf8-491f-9c11-00000000000${index}`,
      nics: [],
      channel,
      // An unread answer of this size fills a socket's buffers.
      userData: Buffer.alloc(512 * 1024, 'user-data ').toString('base64'),
      limits: name === 'fuzz' ? NO_LIMITS : DEFAULT_LIMITS,
    });
    const guest = await lab.addGuest(channel);
    await applyNftCommands(path, planTapRules(channel.device, channel));
    const { status } = await lab.put(view);
    if (status !== 204) throw new Error(`metad refused the view of ${name}: ${status}`);
    parties.set(name, { view, guest });
  }
  return parties;
}

/** metad logs its own failures. */
async function watchLog(
  lab: ChannelLab,
  signal: AbortSignal,
  problems: Set<string>,
): Promise<void> {
  do {
    await sleep(1000, undefined, { signal }).catch(() => undefined);
    for (const line of lab.takeLog().split('\n')) {
      if (/"level":"?(error|fatal|50|60)/.test(line)) problems.add(`metad says: ${line}`);
    }
  } while (!signal.aborted);
}

/** Reads the queues, which keeps room for the guests' writes. */
async function drainQueues(
  lab: ChannelLab,
  parties: ReadonlyMap<string, Party>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const { view } of parties.values()) {
      await lab.control('GET', `/v1/instances/${view.uuid}/queue`).catch(() => undefined);
    }
    await sleep(1000, undefined, { signal }).catch(() => undefined);
  }
}

async function sayProgress(
  pid: number,
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  for (let elapsedS = SAY_EVERY_MS / 1000; ; elapsedS += SAY_EVERY_MS / 1000) {
    await sleep(SAY_EVERY_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const total = (name: string): number => counts.get(name)?.get('connections') ?? 0;
    const memory = `${(await residentMib(pid)).toFixed(0)} MiB`;
    say(`${elapsedS} s: ${total('fuzz')} fuzzed, ${total('flood')} flooded connections, ${memory}`);
  }
}

async function judge(
  lab: ChannelLab,
  seen: {
    readonly pid: number;
    readonly neighbour: NeighbourReport;
    readonly memory: MemoryReport;
    readonly problems: Set<string>;
  },
): Promise<void> {
  const { neighbour, memory, problems } = seen;
  for (const failure of neighbour.failures) problems.add(`neighbour: ${failure}`);
  const p99 = quantile(neighbour.latencies, 0.99);
  if (p99 > MAX_P99_MS) problems.add(`neighbour: p99 is ${p99.toFixed(0)} ms`);
  const growth = memory.late - memory.early;
  if (growth > MAX_GROWTH_MIB) problems.add(`metad grew by ${growth.toFixed(0)} MiB`);
  if (memory.highest > MAX_RESIDENT_MIB) {
    problems.add(`metad had ${memory.highest.toFixed(0)} MiB`);
  }
  const open = await connectionsLeft(lab).catch(() => null);
  if (open === null) problems.add('metad does not answer any more');
  else if (open > 0) problems.add(`metad still holds ${open} connections`);
}

/**
 * Returns the open connections. All guests are gone, so metad must close them within its timeouts.
 */
async function connectionsLeft(lab: ChannelLab): Promise<number> {
  const deadlineMs = performance.now() + SETTLE_MS;
  for (;;) {
    const { body } = await lab.control('GET', '/metrics');
    const open = Number(/^gnt_metad_connections (\d+)$/m.exec(body.toString())?.[1]);
    if (open === 0 || performance.now() > deadlineMs) return open;
    await sleep(200);
  }
}

function summarise(
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
  { latencies, failures }: NeighbourReport,
  { early, late, highest, slope }: MemoryReport,
): readonly string[] {
  const row = (name: string, text: string): string => `${name.padEnd(14)}${text}`;
  const attacks = [...counts].map(([name, own]) =>
    row(name, [...own].map(([what, count]) => `${what} × ${count}`).join(', ')),
  );
  const ms = (q: number): string => `${quantile(latencies, q).toFixed(1)} ms`;
  return [
    ...attacks,
    row(
      NEIGHBOUR,
      `${latencies.length} requests, ${failures.length} failed, p50 ${ms(0.5)}, p99 ${ms(0.99)}, slowest ${ms(1)}`,
    ),
    row(
      'memory',
      `at least ${early.toFixed(0)} → ${late.toFixed(0)} MiB, at most ${highest.toFixed(0)} MiB, slope ${slope.toFixed(1)} MiB/min`,
    ),
  ];
}

function quantile(ascending: readonly number[], q: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(q * ascending.length))] ?? 0;
}
