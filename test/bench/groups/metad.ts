import { readdir, readFile } from 'node:fs/promises';
import type { Guest } from '../../metad/support/channel-lab.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import { measureIdleMemory, startBundle } from '../support/bundled-metad.ts';
import { measureManyInstances } from '../support/many-instances.ts';
import { median, residentBytes, spreadOf } from '../support/measurement.ts';
import type { Report } from '../support/measurement.ts';
import { startPeers } from '../support/peer-servers.ts';
import type { Peer } from '../support/peer-servers.ts';
import { measureTokenRequests } from '../support/token-requests.ts';
import { measureViewUpdate } from '../support/view-update.ts';

/** Ganeti's daemon serves this path too. */
const PATH = '/ganeti/latest/os/parameters.json';
const LINK = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
/** The load of the host varies: only slices of one round are compared with each other. */
const ROUNDS = 17;
const SLICE_S = 0.5;
/** V8 compiles a server's hot functions in these rounds. */
const WARM_UP_ROUNDS = 2;
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

type Sample = Readonly<Record<keyof typeof UNITS, number>>;
/** One slice of each server, one right after the other. */
type Round = ReadonlyMap<Peer, Sample>;

/**
 * Compares the bundled metad with other servers for the same bytes. Then measures its memory, its
 * modules with many instances, their delay for a new view, and requests for tokens.
 */
export async function measure(report: Report): Promise<void> {
  await measureThroughput(report);
  await measureIdleMemory(report);
  await measureManyInstances(report);
  await measureViewUpdate(report);
  await measureTokenRequests(report);
}

async function measureThroughput(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await startBundle(stack));
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

/** Measures slices of all servers in rounds. Each round begins with another server. */
async function measureLoad(
  guest: Guest,
  servers: readonly Peer[],
  options: readonly string[],
): Promise<readonly Round[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const first = round % servers.length;
    const samples = new Map<Peer, Sample>();
    for (const server of [...servers.slice(first), ...servers.slice(0, first)])
      samples.set(server, await hit(guest, server, options));
    rounds.push(samples);
  }
  return rounds.slice(WARM_UP_ROUNDS);
}

function reportLoad(load: string, metad: Peer, rounds: readonly Round[], report: Report): void {
  const peers = [...(rounds[0]?.keys() ?? [])].filter((server) => server !== metad);
  for (const what of Object.keys(UNITS) as (keyof typeof UNITS)[]) {
    const valuesOf = (server: Peer): number[] =>
      rounds.map((samples) => samples.get(server)?.[what] ?? Number.NaN);
    const own = valuesOf(metad);
    for (const peer of peers) {
      const others = valuesOf(peer);
      const ratios = own.map((value, round) => value / (others[round] ?? Number.NaN));
      report({
        name: `${what}, ${load}`,
        value: median(own),
        unit: UNITS[what],
        compared_with: { name: peer.name, value: median(others), ratio: spreadOf(ratios) },
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

/** Runs wrk for one slice and returns its statistics. */
async function hit(guest: Guest, server: Peer, options: readonly string[]): Promise<Sample> {
  const url = `http://169.254.169.254:${server.port}${PATH}`;
  const before = await cpuMicroseconds(server.pid);
  // wrk takes whole seconds, but prints its statistics also when it is interrupted.
  const output = await guest.run(
    ...['timeout', '--preserve-status', '-s', 'INT', `${SLICE_S}`],
    ...['wrk', '-t', '1', '-d', '60s', '--latency', ...options, url],
  );
  const used = (await cpuMicroseconds(server.pid)) - before;
  const errors = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1];
  if (errors !== undefined) throw new Error(`${server.name} refused ${errors} requests`);
  return {
    'requests per second': Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    'CPU time per request': used / Number(/(\d+) requests in/.exec(output)?.[1]),
    p50: parseLatency(output, '50'),
    p99: parseLatency(output, '99'),
  };
}

function parseLatency(output: string, percentile: string): number {
  const [, value, unit] = new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(output) ?? [];
  return Number(value) * (unit === 'us' ? 0.001 : unit === 's' ? 1000 : 1);
}

/** Returns the CPU time of all threads of a process so far. */
async function cpuMicroseconds(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const texts = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')),
  );
  return texts.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1000, 0);
}
