import { KeepAliveClient } from './keep-alive-client.ts';
import { median, residentBytes } from './measurement.ts';
import type { Report } from './measurement.ts';
import { MetadHost, loopbackAddress } from './metad-host-process.ts';

const COUNTS = [10, 1000, 65_000] as const;
const FIRST_PORT = 18_000;
const CONNECTIONS = 64;
/** The same for all counts, because the first requests of each instance write a log line. */
const INSTANCES_ASKED = 10;
const ROUNDS = 9;
const REQUESTS_PER_ROUND = 6400;
const WARM_UP_REQUESTS = 640;
const REQUEST = 'GET /ganeti/latest/meta_data.json HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n';

interface Crowd {
  readonly host: MetadHost;
  readonly instances: number;
  readonly residentBytes: number;
}

/** Measures metad's memory and latency with many instances. */
export async function measureManyInstances(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const crowds: Crowd[] = [];
  for (const [index, instances] of COUNTS.entries()) {
    const host = stack.use(await MetadHost.start(FIRST_PORT + index));
    await host.putAll(instances);
    crowds.push({ host, instances, residentBytes: await residentBytes(host.pid) });
  }
  reportMemory(crowds, report);
  await reportLatency(crowds, report);
}

/** Reports differences only: a host runs from sources, which need more memory than the bundle. */
function reportMemory(crowds: readonly Crowd[], report: Report): void {
  const [few, ...others] = crowds;
  if (few === undefined) return;
  for (const { host, instances, residentBytes } of others) {
    const moreBytes = residentBytes - few.residentBytes;
    report({
      name: `more resident memory, ${instances} instead of ${few.instances} instances`,
      value: moreBytes / 2 ** 20,
      unit: 'MiB',
      compared_with: { name: 'the views', value: (host.viewBytes - few.host.viewBytes) / 2 ** 20 },
    });
  }
  const many = others.at(-1);
  if (many === undefined) return;
  const viewBytes = many.host.viewBytes - few.host.viewBytes;
  const instances = many.instances - few.instances;
  report({
    name: `resident memory beyond its view, each of ${many.instances}`,
    value: (many.residentBytes - few.residentBytes - viewBytes) / instances,
    unit: 'bytes',
    compared_with: { name: 'the view', value: viewBytes / instances },
  });
}

async function reportLatency(crowds: readonly Crowd[], report: Report): Promise<void> {
  const p50s = new Map(crowds.map((crowd) => [crowd, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [{ host, instances }, values] of p50s) {
      await using client = await KeepAliveClient.open(addresses(instances), host.port, REQUEST);
      await client.run(WARM_UP_REQUESTS);
      values.push(median(await client.run(REQUESTS_PER_ROUND)));
    }
  }
  const p50 = (crowd: Crowd): number => median(p50s.get(crowd) ?? []);
  for (const crowd of crowds) {
    report({
      name: `p50, ${CONNECTIONS} connections, ${crowd.instances} instances`,
      value: p50(crowd),
      unit: 'ms',
      compared_with: comparedWithFirst(crowds, crowd, p50),
    });
  }
}

function comparedWithFirst(
  crowds: readonly Crowd[],
  crowd: Crowd,
  valueOf: (crowd: Crowd) => number,
): { name: string; value: number } | null {
  const [few] = crowds;
  if (!few || crowd === few) return null;
  return { name: `${few.instances} instances`, value: valueOf(few) };
}

/** Returns loopback addresses of some instances, evenly spread. */
function addresses(instances: number): string[] {
  return Array.from({ length: CONNECTIONS }, (_, index) =>
    loopbackAddress(Math.floor(((index % INSTANCES_ASKED) * instances) / INSTANCES_ASKED)),
  );
}
