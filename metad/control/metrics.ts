import { Counter, Gauge, Histogram, Registry as PrometheusRegistry } from 'prom-client';
import type { Clock } from '#shared/clock/clock.ts';
import type { Instance } from '../channel/instance.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';

export interface Metrics extends GuestMetrics {
  readonly contentType: string;
  render(): Promise<string>;
}

const LATENCY_BUCKETS_S = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 60];

/** Numbers of this process. No label has a value that a guest chooses. */
export function createMetrics(instances: () => readonly Instance[], clock: Clock): Metrics {
  const registers = [new PrometheusRegistry()];
  const requests = new Counter({
    name: 'gnt_metad_requests_total',
    help: 'Answered requests of guests',
    labelNames: ['dialect', 'status'],
    registers,
  });
  const refusals = new Counter({
    name: 'gnt_metad_refused_total',
    help: 'What guests sent and was refused, by reason',
    labelNames: ['reason'],
    registers,
  });
  const latency = new Histogram({
    name: 'gnt_metad_request_seconds',
    help: 'Time from a request’s headers to the end of its answer, waits included',
    buckets: LATENCY_BUCKETS_S,
    registers,
  });
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
  gauge('gnt_metad_instances', 'Instances served', () => instances().length);
  gauge('gnt_metad_connections', 'Open connections of guests', () =>
    sum(({ sockets }) => sockets.size),
  );
  gauge('gnt_metad_to_guest_bytes', 'Bytes that wait for guests to read them', () =>
    sum(({ toGuest }) => toGuest.waitingBytes),
  );
  gauge('gnt_metad_to_host_bytes', 'Bytes that wait for the host to read them', () =>
    sum(({ toHost }) => toHost.waitingBytes),
  );
  gauge(
    'gnt_metad_resident_bytes',
    'Resident memory of the process',
    () => process.memoryUsage().rss,
  );
  const register = registers[0] as PrometheusRegistry;
  return {
    contentType: register.contentType,
    render: async () => await register.metrics(),
    finished: (path, status, startedAtMs) => {
      requests.inc({ dialect: dialectOf(path), status: String(status) });
      latency.observe((clock.monotonicMs() - startedAtMs) / 1000);
    },
    refused: (reason) => refusals.inc({ reason }),
  };
}

function dialectOf(path: string): string {
  if (path.startsWith('/ganeti')) return 'ganeti';
  if (path.startsWith('/openstack')) return 'openstack';
  if (path.startsWith('/nocloud')) return 'nocloud';
  if (path.startsWith('/latest') || /^\/\d/.test(path)) return 'ec2';
  return 'other';
}
