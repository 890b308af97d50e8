import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { BOOT_STATUSES, type BootReport } from '#shared/contract/boot-report.ts';
import { dataLink, type DataLink } from '#shared/contract/data-links.ts';
import type { JobRecord, JobStatus } from '#shared/contract/job.ts';
import type { InstanceStatus } from '#shared/contract/instance.ts';
import { countCpuSeconds } from '#shared/process/count-cpu-seconds.ts';
import type { PlaceSpace } from '../host/file-systems.ts';
import type { RelayCount } from '../net/relay/relays.ts';
import type { GuestHalt } from '../vmm/machine.ts';

const ACTIVE = ['queued', 'waiting', 'running', 'canceling'] as const satisfies JobStatus[];
const PATHS = dataLink.shape.path.options;

/** Sources that are read at each scrape. */
export interface NodeMetricsSources {
  readonly activeJobs: () => readonly JobStatus[];
  readonly instanceStates: () => Promise<readonly InstanceStatus[]>;
  /** Returns the reasons of paused guests, one per guest. */
  readonly halts: () => readonly GuestHalt['reason'][];
  readonly guestsWithoutSecrets: () => number;
  /** Returns the boot statuses that the cloud-init of running guests reports. */
  readonly guestBoots: () => Promise<readonly BootReport['status'][]>;
  readonly metadRestarts: () => number;
  /** Returns the totals of each relay. */
  readonly relays: () => readonly RelayCount[];
  /** Returns the way of streams to each node that was used. */
  readonly linkPaths: () => readonly DataLink['path'][];
  readonly cacheBytes: () => Promise<number>;
  /** Returns the file systems that this node writes to. */
  readonly places: () => Promise<readonly PlaceSpace[]>;
  /** Returns the total size to which the disks of this node may grow. */
  readonly promisedBytes: () => Promise<number>;
}

/** Creates the Prometheus metrics of the node daemon. The caller adds those of gnt-metad. */
export function createNodeMetrics(startedAtMs: number) {
  const registry = new Registry();
  const registers = [registry];
  const jobs = new Counter({
    name: 'gnt_jobs_ended_total',
    help: 'Jobs that ended, by opcode and status',
    labelNames: ['opcode', 'status'],
    registers,
  });
  const stages = new Histogram({
    name: 'gnt_install_stage_seconds',
    help: 'Duration of installation stages',
    labelNames: ['stage'],
    buckets: [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900],
    registers,
  });
  const rapi = new Counter({
    name: 'gnt_rapi_requests_total',
    help: 'Requests to the remote API by method and status',
    labelNames: ['method', 'status'],
    registers,
  });
  // Queries detect restarts by its changes.
  new Gauge({
    name: 'gnt_start_time_seconds',
    help: 'Start time of gnt-noded in seconds since the epoch',
    registers,
  }).set(startedAtMs / 1000);
  countCpuSeconds('gnt_noded_cpu_seconds_total', 'Processor time of gnt-noded', registers);
  return {
    jobEnded: (job: Pick<JobRecord, 'opcode' | 'status'>): void =>
      jobs.inc({ opcode: job.opcode, status: job.status }),
    stageEnded: (stage: string, durationMs: number): void =>
      stages.observe({ stage }, durationMs / 1000),
    rapiAnswered: (method: string, status: number): void =>
      rapi.inc({ method, status: String(status) }),
    observe: (sources: NodeMetricsSources): void => observeNode(sources, registers),
    render: (): Promise<string> => registry.metrics(),
  };
}

export type NodeMetrics = ReturnType<typeof createNodeMetrics>;

function observeNode(sources: NodeMetricsSources, registers: Registry[]): void {
  new Gauge({
    name: 'gnt_jobs',
    help: 'Unfinished jobs by status',
    labelNames: ['status'],
    registers,
    collect() {
      this.reset();
      for (const status of ACTIVE) this.set({ status }, 0);
      for (const status of sources.activeJobs()) this.inc({ status });
    },
  });
  new Gauge({
    name: 'gnt_instances',
    help: 'Instances of this node by status',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset();
      try {
        // Count first: with tens of thousands of instances, one update of the gauge per instance is
        // slower.
        const counts = Map.groupBy(await sources.instanceStates(), (status) => status);
        for (const [status, all] of counts) this.set({ status }, all.length);
      } catch {
        // The store is unavailable: report the other metrics.
      }
    },
  });
  new Gauge({
    name: 'gnt_guests_halted',
    help: 'Instances that QEMU paused after a failed write, by reason',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of ['disk-full', 'disk-error']) this.set({ reason }, 0);
      for (const reason of sources.halts()) this.inc({ reason });
    },
  });
  new Gauge({
    name: 'gnt_guests_without_secrets',
    help: 'Running guests that cannot read their secrets, since gnt-metad lost them',
    registers,
    collect() {
      this.set(sources.guestsWithoutSecrets());
    },
  });
  new Gauge({
    name: 'gnt_guest_boots',
    help: 'Running guests by the boot status that cloud-init reports',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset();
      try {
        const statuses = await sources.guestBoots();
        for (const status of BOOT_STATUSES) this.set({ status }, 0);
        for (const status of statuses) this.inc({ status });
      } catch {
        // The store is unavailable.
      }
    },
  });
  new Gauge({
    name: 'gnt_metad_restarts',
    help: 'Restarts of gnt-metad',
    registers,
    collect() {
      this.set(sources.metadRestarts());
    },
  });
  new Counter({
    name: 'gnt_relay_requests_total',
    help: 'Requests of guests to relays: answered by the server, or refused and failed',
    labelNames: ['relay', 'result'],
    registers,
    collect() {
      this.reset();
      for (const { relay, answers, failures } of sources.relays()) {
        this.inc({ relay, result: 'answered' }, answers);
        this.inc({ relay, result: 'failed' }, failures);
      }
    },
  });
  new Counter({
    name: 'gnt_relay_bytes_total',
    help: 'Bytes of bodies that relays sent to servers and received from them',
    labelNames: ['relay', 'direction'],
    registers,
    collect() {
      this.reset();
      for (const { relay, sent, received } of sources.relays()) {
        this.inc({ relay, direction: 'sent' }, sent);
        this.inc({ relay, direction: 'received' }, received);
      }
    },
  });
  new Gauge({
    name: 'gnt_data_links',
    help: 'Other nodes by the way of streams to them. store: the data link fails or is missing',
    labelNames: ['path'],
    registers,
    collect() {
      this.reset();
      for (const path of PATHS) this.set({ path }, 0);
      for (const path of sources.linkPaths()) this.inc({ path });
    },
  });
  new Gauge({
    name: 'gnt_image_cache_bytes',
    help: 'Size of the image cache',
    registers,
    async collect() {
      this.set(await sources.cacheBytes());
    },
  });
  for (const [name, help, key] of [
    [
      'gnt_file_system_free_bytes',
      'Free bytes of the file systems that this node writes to',
      'freeBytes',
    ],
    [
      'gnt_file_system_size_bytes',
      'Size of the file systems that this node writes to',
      'totalBytes',
    ],
  ] as const) {
    new Gauge({
      name,
      help: `${help}, by use: store, disks, images, exports, logs`,
      labelNames: ['place'],
      registers,
      async collect() {
        this.reset();
        for (const { place, [key]: bytes } of await sources.places()) this.set({ place }, bytes);
      },
    });
  }
  new Gauge({
    name: 'gnt_disks_promised_bytes',
    help: 'Maximum total size of the sparse disks and snapshots of this node',
    registers,
    async collect() {
      this.reset();
      try {
        this.set(await sources.promisedBytes());
      } catch {
        // The store is unavailable.
      }
    },
  });
}
