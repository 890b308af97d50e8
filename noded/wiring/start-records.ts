import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { createRecordProblems, type RecordProblems } from '#shared/store/readable-records.ts';
import { createNoticedStore } from '#shared/store/noticed-store.ts';
import { createPatientStore } from '#shared/store/patient-store.ts';
import type { Store } from '#shared/store/store.ts';
import { releaseMemoryWhenSettled } from '#shared/sys/release-memory.ts';
import { joinCluster } from '../cluster/membership/join-cluster.ts';
import type { Membership } from '../cluster/membership/membership.ts';
import type { NodedConfig } from './config.ts';
import { createJobRepository, type JobRepository } from '../jobs/job-repository.ts';
import type { NodeLinks } from '../cluster/peers/node-links.ts';
import { createClusterRepository, type ClusterRepository } from '../records/cluster-repository.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../records/instance-repository.ts';
import { startInstanceIndex, type InstanceIndex } from '../records/instance-index.ts';
import { createNodeRegistry, type NodeRegistry } from '../records/node-registry.ts';
import { Outcomes } from '../records/outcomes.ts';
import { openStore, type CommonStore } from '../records/open-store.ts';

/**
 * Logs settings with which the store may lose acknowledged writes. The node starts anyway, since
 * guests need it.
 */
async function tellRisks(store: Store, logger: Logger): Promise<void> {
  try {
    for (const { level, message, hint } of (await store.risks?.()) ?? [])
      logger[level === 'error' ? 'error' : 'warn']('store.risk', { message, hint });
  } catch (error) {
    // The store's Redis user may lack permission for INFO.
    logger.warn('store.risks-not-known', { err: error });
  }
}

export interface NodeRecords extends AsyncDisposable {
  readonly store: Store;
  /** The place of the records in words, without a password. */
  readonly storeDescription: string;
  /** Unreadable records. */
  readonly problems: RecordProblems;
  readonly clusters: ClusterRepository;
  /**
   * Records for accepted jobs: these wait while the store is unavailable, until `endWaits`. All
   * other callers get the error at once.
   */
  readonly patient: {
    readonly clusters: ClusterRepository;
    readonly instances: InstanceRepository;
    readonly nodes: NodeRegistry;
  };
  readonly outcomes: Outcomes;
  /** Must be called before jobs are stopped. */
  readonly endWaits: () => void;
  /** Returns when the store last failed to answer, on the monotonic clock; null if it never did. */
  readonly lastAwayAtMs: () => number | null;
  readonly nodes: NodeRegistry;
  readonly instances: InstanceRepository;
  /** Small parts of instances, for lists and counts. */
  readonly index: InstanceIndex;
  readonly jobs: JobRepository;
  /** Null on a single-node cluster, like `peers`. */
  readonly common: CommonStore | null;
  readonly peers: NodeLinks | null;
  readonly membership: Membership;
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string | undefined) => boolean;
}

export async function startRecords(
  config: NodedConfig,
  clock: Clock,
  logger: Logger,
): Promise<NodeRecords> {
  const { paths, nodeName } = config;
  await using undo = new AsyncDisposableStack();
  const opened = await openStore(paths, clock, logger);
  let awayAtMs: number | null = null;
  const store = createNoticedStore(opened.store, () => (awayAtMs = clock.monotonicMs()));
  const waits = new AbortController();
  undo.defer(() => store.close());
  const problems = createRecordProblems(logger);
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  await tellRisks(store, logger);
  const nodes = createNodeRegistry(store, problems);
  const { peers, membership } = undo.use(
    await joinCluster({ ...opened, store }, config, nodes, paths, logger),
  );
  const index = undo.use(
    startInstanceIndex({ ...{ store, problems, logger }, onReadWhole: releaseMemoryWhenSettled }),
  );
  const patientStore = createPatientStore(store, waits.signal);
  const instances = createInstanceRepository(store, clock, problems);
  const jobs = createJobRepository(store, problems);
  const outcomesOptions = { dir: paths.outcomesDir, jobs, instances, signal: waits.signal, logger };
  const all = undo.move();
  return {
    store,
    patient: {
      clusters: createClusterRepository(patientStore, clock),
      instances: createInstanceRepository(patientStore, clock, problems),
      nodes: createNodeRegistry(patientStore, problems),
    },
    outcomes: new Outcomes(outcomesOptions),
    endWaits: () => waits.abort(),
    lastAwayAtMs: () => awayAtMs,
    storeDescription: opened.description,
    common: opened.common,
    problems,
    clusters,
    nodes,
    instances,
    index,
    jobs,
    peers,
    membership,
    // An embedded store holds only this node's records, also under an earlier name.
    owns: (node) =>
      membership.removedAtMs() === null && (opened.common === null || node === nodeName),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
