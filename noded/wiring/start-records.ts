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
import type { PeerLink } from '../cluster/peers/peer-link.ts';
import { createClusterRepository, type ClusterRepository } from '../records/cluster-repository.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../records/instance-repository.ts';
import { startInstanceIndex, type InstanceIndex } from '../records/instance-index.ts';
import { createNodeRegistry, type NodeRegistry } from '../records/node-registry.ts';
import { createOutcomes, type Outcomes } from '../records/outcomes.ts';
import { openStore, type CommonStore } from '../records/open-store.ts';

/**
 * What was told may be lost by the store itself: it is said, and guests need the node all the same.
 */
async function tellRisks(store: Store, logger: Logger): Promise<void> {
  try {
    for (const { level, message, hint } of (await store.risks?.()) ?? [])
      logger[level === 'error' ? 'error' : 'warn']('store.risk', { message, hint });
  } catch (error) {
    // A user of Redis need not be allowed INFO.
    logger.warn('store.risks-not-known', { err: error });
  }
}

/** What the cluster knows, and this node's place in it. */
export interface NodeRecords extends AsyncDisposable {
  readonly store: Store;
  /** Where the records are, in words for people; never with a password. */
  readonly storeDescription: string;
  /** The records that cannot be read. */
  readonly problems: RecordProblems;
  readonly clusters: ClusterRepository;
  /**
   * Records for jobs, which were accepted: they wait for a store that is away, until the waits are
   * ended. Everybody else is told at once.
   */
  readonly patient: {
    readonly clusters: ClusterRepository;
    readonly instances: InstanceRepository;
    readonly nodes: NodeRegistry;
  };
  readonly outcomes: Outcomes;
  /** Has to be called before jobs are stopped. */
  readonly endWaits: () => void;
  /** When the store did not answer last, on the monotonic clock; null where it always did. */
  readonly lastAwayAtMs: () => number | null;
  readonly nodes: NodeRegistry;
  readonly instances: InstanceRepository;
  /** The small parts of instances, for lists and counts. */
  readonly index: InstanceIndex;
  readonly jobs: JobRepository;
  /** Null, as are peers, for a node that is a cluster by itself. */
  readonly common: CommonStore | null;
  readonly peers: PeerLink | null;
  readonly membership: Membership;
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string | undefined) => boolean;
}

export async function startRecords(
  { paths, nodeName }: NodedConfig,
  clock: Clock,
  logger: Logger,
): Promise<NodeRecords> {
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
    await joinCluster({ ...opened, store }, nodeName, nodes, paths, logger),
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
    outcomes: createOutcomes(outcomesOptions),
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
    // An embedded store has what this node made, also under an earlier name.
    owns: (node) =>
      membership.removedAtMs() === null && (opened.common === null || node === nodeName),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
