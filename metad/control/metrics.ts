import { Counter, Gauge, Registry as PrometheusRegistry } from 'prom-client';
import { countCpuSeconds } from '#shared/process/count-cpu-seconds.ts';
import type { Instance } from '../channel/instance.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';

export interface Metrics extends GuestMetrics {
  readonly contentType: string;
  render(): Promise<string>;
}

const LATENCY = 'gnt_metad_request_seconds';
const LATENCY_HELP = 'Time from the headers of a request to the end of its answer, including waits';
const LATENCY_BUCKETS_S = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 60];
const DIALECTS = ['ganeti', 'ec2', 'openstack', 'nocloud', 'gce', 'other'] as const;
type DialectIndex = 0 | 1 | 2 | 3 | 4 | 5;

/** Creates the metrics of this process. No label has a value that a guest chooses. */
export function createMetrics(
  instances: () => readonly Instance[],
  datagramFlows: () => number = () => 0,
): Metrics {
  const register = new PrometheusRegistry();
  const registers = [register];
  const tally = new Tally(DIALECTS.length, LATENCY_BUCKETS_S);
  const refusals = new Counter({
    name: 'gnt_metad_refused_total',
    help: 'Refused requests and connections of guests, by reason',
    labelNames: ['reason'],
    registers,
  });
  addRequests(registers, tally);
  addGauges(registers, instances, datagramFlows);
  return {
    contentType: register.contentType,
    render: async () =>
      `${await register.metrics()}\n${tally.formatLatency(LATENCY, LATENCY_HELP)}`,
    finished: (path, status, tookMs) => tally.add(dialectOf(path), status, tookMs / 1000),
    refused: (reason) => refusals.inc({ reason }),
  };
}

/**
 * Requests are counted in plain arrays, since there are many, and converted to a counter on demand.
 */
function addRequests(registers: PrometheusRegistry[], tally: Tally): void {
  new Counter({
    name: 'gnt_metad_requests_total',
    help: 'Answered requests of guests, by dialect and status',
    labelNames: ['dialect', 'status'],
    registers,
    collect() {
      this.reset();
      for (const { group, status, count } of tally.counts()) {
        this.inc({ dialect: DIALECTS[group] ?? '', status: String(status) }, count);
      }
    },
  });
}

function addGauges(
  registers: PrometheusRegistry[],
  instances: () => readonly Instance[],
  datagramFlows: () => number,
): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  const sum = (of: (instance: Instance) => number): number =>
    instances().reduce((total, instance) => total + of(instance), 0);
  gauge('gnt_metad_instances', 'Instances that gnt-metad serves', () => instances().length);
  gauge('gnt_metad_connections', 'Open connections of guests', () =>
    sum(({ sockets }) => sockets.size),
  );
  gauge('gnt_metad_datagram_flows', 'Open flows of guests to exposed UDP services', datagramFlows);
  gauge('gnt_metad_unanswered_requests', 'Requests without a complete answer', () =>
    sum(({ unanswered }) => unanswered),
  );
  gauge('gnt_metad_to_guest_bytes', 'Bytes queued for guests', () =>
    sum(({ bytesToGuest }) => bytesToGuest),
  );
  gauge('gnt_metad_to_host_bytes', 'Bytes queued for the host', () =>
    sum(({ bytesToHost }) => bytesToHost),
  );
  gauge(
    'gnt_metad_resident_bytes',
    'Resident memory of gnt-metad',
    () => process.memoryUsage().rss,
  );
  countCpuSeconds('gnt_metad_cpu_seconds_total', 'Processor time of gnt-metad', registers);
}

function dialectOf(path: string): DialectIndex {
  if (path.startsWith('/ganeti')) return 0;
  if (path.startsWith('/openstack')) return 2;
  if (path.startsWith('/nocloud')) return 3;
  if (path.startsWith('/latest') || /^\/\d/.test(path)) return 1;
  if (path.startsWith('/computeMetadata')) return 4;
  return 5;
}

/** Above every status code of HTTP. */
const STATUSES = 600;

/**
 * Counts answers by group and status, and their durations. The arrays are made once: counting
 * allocates nothing.
 */
export class Tally {
  readonly #counts: Float64Array;
  readonly #boundsS: readonly number[];
  /** Answers by duration up to the bound of the same index; the last bucket is above all bounds. */
  readonly #buckets: Float64Array;
  #sumS = 0;

  /** @param boundsS upper bounds of the buckets in seconds, in ascending order */
  constructor(groups: number, boundsS: readonly number[]) {
    this.#counts = new Float64Array(groups * STATUSES);
    this.#boundsS = boundsS;
    this.#buckets = new Float64Array(boundsS.length + 1);
  }

  add(group: number, status: number, tookS: number): void {
    // The constructor made room for every index.
    this.#counts[group * STATUSES + status]! += 1;
    let bucket = 0;
    while (bucket < this.#boundsS.length && tookS > this.#boundsS[bucket]!) bucket++;
    this.#buckets[bucket]! += 1;
    this.#sumS += tookS;
  }

  *counts(): Generator<{
    readonly group: number;
    readonly status: number;
    readonly count: number;
  }> {
    for (const [index, count] of this.#counts.entries()) {
      if (count === 0) continue;
      yield { group: Math.floor(index / STATUSES), status: index % STATUSES, count };
    }
  }

  /** Returns a histogram in Prometheus' text format. */
  formatLatency(name: string, help: string): string {
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
    let total = 0;
    for (const [index, count] of this.#buckets.entries()) {
      total += count;
      lines.push(`${name}_bucket{le="${this.#boundsS[index] ?? '+Inf'}"} ${total}`);
    }
    lines.push(`${name}_sum ${this.#sumS}`, `${name}_count ${total}`);
    return `${lines.join('\n')}\n`;
  }
}
