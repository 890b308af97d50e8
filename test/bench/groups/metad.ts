import { readFile } from 'node:fs/promises';
import { ChannelLab } from '../../metad/support/channel-lab.ts';
import type { Guest } from '../../metad/support/channel-lab.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import { measureManyInstances } from '../support/many-instances.ts';
import { median, residentBytes } from '../support/measurement.ts';
import type { Report } from '../support/measurement.ts';
import { startPeers } from '../support/peer-servers.ts';
import type { Peer } from '../support/peer-servers.ts';
import { measureViewUpdate } from '../support/view-update.ts';

/** Ganeti's daemon serves this path too. */
const PATH = '/ganeti/latest/os/parameters.json';
const LINK = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
/** Servers alternate, because the load of the host varies. */
const ROUNDS = 7;
const SECONDS = 1;
const LOADS = [
  { name: '1 connection', options: ['-c', '1'] },
  { name: '64 connections', options: ['-c', '64'] },
  { name: '256 connections', options: ['-c', '256'] },
  { name: 'a connection per request, 64', options: ['-c', '64', '-H', 'Connection: close'] },
] as const;
const UNITS = {
  'requests per second': '1/s',
  'CPU time per request': 'µs',
  p50: 'ms',
  p99: 'ms',
} as const;
/** A clock tick of /proc is 10 ms on all platforms of Node. */
const US_PER_TICK = 10_000;

type Sample = Readonly<Record<keyof typeof UNITS, number>>;

/**
 * Compares metad with other servers for the same bytes, then measures metad with many instances and
 * its delay for a new view.
 */
export async function measure(report: Report): Promise<void> {
  await measureThroughput(report);
  await measureManyInstances(report);
  await measureViewUpdate(report);
}

async function measureThroughput(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await ChannelLab.create());
  const guest = await lab.addGuest(LINK);
  // TIME_WAIT sockets would otherwise use up the ports, and the benchmark would measure the wait
  // for a port.
  await guest.run('sysctl', '-qw', 'net.ipv4.tcp_max_tw_buckets=0');
  const parameters = Object.fromEntries(
    Array.from({ length: 12 }, (_, index) => [`parameter${index}`, 'x'.repeat(16)]),
  );
  const answer = await lab.put(
    exampleView({
      osParameters: Object.fromEntries(
        Object.entries(parameters).map(([name, value]) => [name, { value, visibility: 'public' }]),
      ),
      limits: { requestsPerSecond: 1e9, burst: 1e9, connections: 1024 },
    }),
  );
  if (answer.status !== 204) throw new Error(`metad took no view: ${String(answer.body)}`);
  const peers = await startPeers(
    {
      namespace: lab.namespace,
      directory: lab.directory,
      path: PATH,
      body: await guest.run('curl', '-sf', `http://169.254.169.254${PATH}`),
      guestIp: LINK.ip,
      parameters,
    },
    stack,
  );
  const metad = { name: 'metad', port: 80, pid: lab.metadPid };
  for (const load of LOADS) {
    reportLoad(load.name, metad, await measureLoad(guest, [metad, ...peers], load.options), report);
  }
  await reportMemory(metad, peers, report);
}

async function measureLoad(
  guest: Guest,
  servers: readonly Peer[],
  options: readonly string[],
): Promise<ReadonlyMap<Peer, readonly Sample[]>> {
  const samples = new Map(servers.map((server) => [server, [] as Sample[]]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [server, list] of samples) {
      const sample = await hit(guest, server, options);
      // The first round warms up.
      if (round > 0) list.push(sample);
    }
  }
  return samples;
}

function reportLoad(
  load: string,
  metad: Peer,
  samples: ReadonlyMap<Peer, readonly Sample[]>,
  report: Report,
): void {
  for (const what of Object.keys(UNITS) as (keyof typeof UNITS)[]) {
    const valueOf = (server: Peer): number =>
      median((samples.get(server) ?? []).map((sample) => sample[what]));
    for (const server of samples.keys()) {
      if (server === metad) continue;
      report({
        name: `${what}, ${load}`,
        value: valueOf(metad),
        unit: UNITS[what],
        compared_with: { name: server.name, value: valueOf(server) },
      });
    }
  }
}

async function reportMemory(metad: Peer, peers: readonly Peer[], report: Report): Promise<void> {
  const mebibytes = async ({ pid }: Peer): Promise<number> => (await residentBytes(pid)) / 2 ** 20;
  for (const peer of peers) {
    report({
      name: 'resident memory after these loads',
      value: await mebibytes(metad),
      unit: 'MiB',
      compared_with: { name: peer.name, value: await mebibytes(peer) },
    });
  }
}

/** Runs wrk once and returns its statistics. */
async function hit(guest: Guest, server: Peer, options: readonly string[]): Promise<Sample> {
  const url = `http://169.254.169.254:${server.port}${PATH}`;
  const before = await cpuTicks(server.pid);
  const output = await guest.run(
    'wrk',
    '-t',
    '1',
    '-d',
    `${SECONDS}s`,
    '--latency',
    ...options,
    url,
  );
  const ticks = (await cpuTicks(server.pid)) - before;
  const errors = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1];
  if (errors !== undefined) throw new Error(`${server.name} refused ${errors} requests`);
  return {
    'requests per second': Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    'CPU time per request': (ticks * US_PER_TICK) / Number(/(\d+) requests in/.exec(output)?.[1]),
    p50: parseLatency(output, '50'),
    p99: parseLatency(output, '99'),
  };
}

function parseLatency(output: string, percentile: string): number {
  const [, value, unit] = new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(output) ?? [];
  return Number(value) * (unit === 'us' ? 0.001 : unit === 's' ? 1000 : 1);
}

/** Returns the user and system CPU time of a process so far, in ticks. */
async function cpuTicks(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
