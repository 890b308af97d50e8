import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { createRecordProblems, type RecordProblems } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import { joinCluster } from './cluster/join-cluster.ts';
import type { NodedConfig } from './config.ts';
import { createJobRepository, type JobRepository } from './jobs/job-repository.ts';
import type { PeerLink } from './peers/peer-link.ts';
import { createClusterRepository, type ClusterRepository } from './records/cluster-repository.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from './records/instance-repository.ts';
import { createNodeRegistry, type NodeRegistry } from './records/node-registry.ts';
import { openStore } from './records/open-store.ts';

/** What the cluster knows, and this node's place in it. */
export interface NodeRecords extends AsyncDisposable {
  readonly store: Store;
  /** Where the records are, in words for people; never with a password. */
  readonly storeDescription: string;
  /** The records that cannot be read. */
  readonly problems: RecordProblems;
  readonly clusters: ClusterRepository;
  readonly nodes: NodeRegistry;
  readonly instances: InstanceRepository;
  readonly jobs: JobRepository;
  /** Null for a node that is a cluster by itself. */
  readonly peers: PeerLink | null;
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
  const { store } = opened;
  undo.defer(() => store.close());
  const problems = createRecordProblems(logger);
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const nodes = createNodeRegistry(store, problems);
  const peers = undo.use(await joinCluster(opened, nodeName, nodes, paths, logger));
  const all = undo.move();
  return {
    store,
    storeDescription: opened.description,
    problems,
    clusters,
    nodes,
    instances: createInstanceRepository(store, clock, problems),
    jobs: createJobRepository(store, problems),
    peers,
    // An embedded store has what this node made, also under an earlier name.
    owns: (node) => peers === null || node === nodeName,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
