import { spawn, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelLab, type Guest } from '../../test/metad/support/channel-lab.ts';
import { exampleView } from '../../test/metad/support/view-fixture.ts';
import type { Report } from './support/measurement.ts';

/** The same path in each shape of load; rounds alternate between the servers, since the machine is never quiet. */
const PATH = '/ganeti/latest/meta_data.json';
const LINK = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
const ROUNDS = 3;
const SECONDS = 2;
const REFERENCE_PORT = 8080;
const LOADS = [
  { name: '1 connection', options: ['-c', '1'] },
  { name: '64 connections', options: ['-c', '64'] },
  { name: '256 connections', options: ['-c', '256'] },
  { name: 'a connection per request, 64', options: ['-c', '64', '-H', 'Connection: close'] },
] as const;

interface Sample {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** metad against a bare `node:http` server with the same bytes, seen from one guest. Needs `wrk`. */
export async function measure(report: Report): Promise<void> {
  await using lab = await ChannelLab.create();
  const guest = await lab.addGuest(LINK);
  // Without this, closed connections use up the ports, and what is measured is the wait for one.
  await guest.run('sysctl', '-qw', 'net.ipv4.tcp_max_tw_buckets=0');
  const limits = { requestsPerSecond: 1e9, burst: 1e9, connections: 1024 };
  await lab.control(
    'PUT',
    `/v1/instances/${exampleView().uuid}`,
    JSON.stringify(exampleView({ limits })),
    {
      'content-type': 'application/json',
    },
  );
  const body = await guest.run('curl', '-sf', `http://169.254.169.254${PATH}`);
  const reference = await startReference(lab.namespace, body);
  try {
    for (const load of LOADS) {
      const samples = { metad: [] as Sample[], bare: [] as Sample[] };
      for (let round = 0; round < ROUNDS; round += 1) {
        samples.metad.push(await hit(guest, 80, load.options));
        samples.bare.push(await hit(guest, REFERENCE_PORT, load.options));
      }
      for (const [what, unit] of [
        ['requestsPerSecond', '1/s'],
        ['p50Ms', 'ms'],
        ['p99Ms', 'ms'],
      ] as const) {
        report({
          name: `${what}, ${load.name}`,
          value: median(samples.metad.map((sample) => sample[what])),
          unit,
          compared_with: {
            name: 'bare node:http',
            value: median(samples.bare.map((sample) => sample[what])),
          },
        });
      }
    }
    report({
      name: 'resident memory after the load',
      value: await residentMiB(lab.metadPid),
      unit: 'MiB',
      compared_with: { name: 'bare node:http', value: await residentMiB(reference.pid ?? 0) },
    });
    await measureUpdate(lab, guest, report);
  } finally {
    reference.kill('SIGKILL');
  }
}

/** From the answer to noded's PUT to a guest that hangs in `wait_for_change`. */
async function measureUpdate(lab: ChannelLab, guest: Guest, report: Report): Promise<void> {
  const view = exampleView({ revision: 2, metadata: { role: 'changed' } });
  const waiting = guest.run(
    'curl',
    '-sf',
    '-w',
    '%{time_total}',
    '-o',
    '/dev/null',
    `http://169.254.169.254${PATH}?wait_for_change=true&timeout_sec=10`,
  );
  await sleep(1000);
  const startedAt = performance.now();
  await lab.control('PUT', `/v1/instances/${view.uuid}`, JSON.stringify(view), {
    'content-type': 'application/json',
  });
  await waiting;
  report({
    name: 'view pushed to answer of a waiting guest (with curl’s end)',
    value: performance.now() - startedAt,
    unit: 'ms',
    compared_with: null,
  });
}

async function startReference(namespace: string, body: string): Promise<ChildProcess> {
  const program = `
    const body = Buffer.from(process.argv[1]);
    require('node:http').createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.end(body);
    }).listen(${REFERENCE_PORT}, '169.254.169.254');`;
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', program, body], {
    stdio: 'ignore',
  });
  await sleep(1000);
  return child;
}

/** One run of wrk, with its own statistics. */
async function hit(guest: Guest, port: number, options: readonly string[]): Promise<Sample> {
  const url = `http://169.254.169.254:${port}${PATH}`;
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
  const errors = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1];
  if (errors !== undefined) throw new Error(`${errors} requests to port ${port} were refused`);
  return {
    requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    p50Ms: parseLatency(output, '50'),
    p99Ms: parseLatency(output, '99'),
  };
}

function parseLatency(output: string, percentile: string): number {
  const [, value, unit] = new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(output) ?? [];
  return Number(value) * (unit === 'us' ? 0.001 : unit === 's' ? 1000 : 1);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
