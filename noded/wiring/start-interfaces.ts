import type { Readable } from 'node:stream';
import type { Clock } from '#shared/clock/clock.ts';
import type { DoctorReport } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type { Logger } from '#shared/log/log.ts';
import { createApiRoutes, type ApiDependencies } from '../api/http/api-routes.ts';
import { createConnectionApi, startApiServer } from '../api/http/api-server.ts';
import { admittedJobs } from '../cluster/placement/admitted-jobs.ts';
import type { MigrationTarget } from '../cluster/migration/migration-target-contract.ts';
import { createMigrationTarget } from '../cluster/migration/migration-target.ts';
import { noMigrationTarget } from '../cluster/migration/no-migration-target.ts';
import { createExpectGuest } from '../cluster/migration/incoming-guest.ts';
import { clusterJobs } from '../cluster/cluster-jobs.ts';
import {
  createClusterOverview,
  createOwnOverview,
  type Overview,
  type OverviewSources,
} from '../cluster/membership/overview.ts';
import type { FeedSources } from '../cluster/feed/change-follower.ts';
import { summarizeJob } from '../cluster/feed/summarize-job.ts';
import { ClusterFeed } from '../cluster/feed/cluster-feed.ts';
import { examineNodes } from '../cluster/membership/examine-nodes.ts';
import { issueJoinToken } from '../cluster/membership/join-tokens.ts';
import { createNodeRoom, type NodeRoom } from '../cluster/placement/node-room.ts';
import { RunningElsewhere } from '../cluster/membership/running-elsewhere.ts';
import { giveToNodes } from '../cluster/membership/give-relay-secret.ts';
import { removeNode } from '../cluster/membership/remove-node.ts';
import {
  noClusterKey,
  startClusterKey,
  type ClusterKey,
} from '../cluster/membership/start-cluster-key.ts';
import { createIsTaken } from '../cluster/migration/settle-moves.ts';
import type { NodedConfig } from './config.ts';
import { describeNode } from '../operations/doctor/describe-node.ts';
import { examineHost } from '../operations/doctor/examine-host.ts';
import { measureRoom } from '../host/measure-room.ts';
import { residentMiB } from '../host/process-facts.ts';
import { readQemuVersion } from '../vmm/qemu-command.ts';
import { readProcessor, requireFit } from '../vmm/machine-nature.ts';
import { endConnections } from '../net/channel/end-connections.ts';
import { listRunning } from '../instances/machines/watch-machines.ts';
import { previewBootPlan } from '../instances/view/preview-boot-plan.ts';
import { failInterruptedJobs } from '../jobs/fail-interrupted.ts';
import type { JobEngine } from '../jobs/job-engine.ts';
import { layerJobs } from '../jobs/job-service.ts';
import type { NodeMetrics } from './node-metrics.ts';
import { checkArrival } from '../operations/check-arrival.ts';
import type { HookChecker } from '../provision/os/check-hooks.ts';
import { describeAllOs } from '../provision/os/describe-os.ts';
import type { OsRegistry } from '../provision/os/os-registry.ts';
import type { NodeLinks } from '../cluster/peers/node-links.ts';
import { startIdentityServer } from '../api/identity/identity-server.ts';
import { planPublished } from '../instances/identity/published.ts';
import { createRapiRoutes, startRapi } from '../api/rapi/rapi-server.ts';
import { LoginLimit } from '../api/rapi/login-limit.ts';
import { startWeb } from '../api/web/start-web.ts';
import { createUserHandlers } from '../api/web/user-handlers.ts';
import { type LoopbackParts, openLoopback } from '../api/web/open-loopback.ts';
import type { NodeGuests } from './start-guests.ts';
import type { NodeHost } from './start-host.ts';
import type { NodeRecords } from './start-records.ts';

export interface InterfacesParts {
  readonly version: string;
  readonly startedAtMs: number;
  readonly config: NodedConfig;
  readonly records: NodeRecords;
  readonly host: NodeHost;
  readonly guests: NodeGuests;
  readonly osRegistry: OsRegistry;
  readonly hookChecker: HookChecker;
  readonly jobs: JobEngine;
  readonly metrics: NodeMetrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

type OwnDependencies = ApiDependencies & { readonly overview: Overview };

/**
 * Starts the API on the node's socket, the API for other nodes of the cluster, and the remote API.
 */
export async function startInterfaces(parts: InterfacesParts): Promise<AsyncDisposable> {
  const { config, records, metrics, clock, logger } = parts;
  const { paths, nodeName } = config;
  const { instances, owns, peers } = records;
  const sources = ownSources(parts);
  await using undo = new AsyncDisposableStack();
  const clusterKey = undo.use(startKey(parts));
  const own = ownDependencies(parts, sources, clusterKey);
  const alone: OwnDependencies = {
    ...own,
    feed: undo.use(createFeed(parts, own.overview, () => Promise.resolve(new Map()))),
    openWeb: (port: number, signal: AbortSignal): Promise<Readable> =>
      openLoopback(port, signal, web()),
  };
  const { forPeers, served } =
    peers === null
      ? { forPeers: alone, served: alone }
      : serveCluster(parts, { sources, own: alone, peers, undo });
  const forwarding = peers && { peers, instances, owns };
  // Passwords of the users file can be guessed on both interfaces.
  const limit = new LoginLimit(clock);
  if (config.rapi !== null) {
    const onAnswered = metrics.rapiAnswered;
    const routes = createRapiRoutes({ ...served, disksDir: paths.disksDir });
    undo.use(await startRapi(config.rapi, { routes, nodeName, logger, limit, onAnswered }));
  }
  if (config.identity !== null) {
    const load = async (): Promise<Readonly<Record<string, string>>> => {
      const keys = await records.clusters.loadIdentityKeys();
      return planPublished(await records.clusters.load(), keys, clock.now());
    };
    undo.use(await startIdentityServer(config.identity, { load, nodeName, logger }));
  }
  // The node is ready when its own socket answers: start this last.
  const all = { handlers: createApiRoutes(served), forwarding, logger };
  const web = (): LoopbackParts => ({
    ...{ forwarding, logger, nodeName, version: parts.version, clock, instances },
    handlers: createUserHandlers(all.handlers, served),
    socketPath: paths.nodedSocket,
  });
  if (config.web !== null) undo.use(await startWeb(config.web, { ...web(), limit }));
  const api = await startApiServer(paths.nodedSocket, all);
  undo.defer(() => api.close());
  // A start that fails must not have accepted requests of other nodes.
  if (peers !== null) answerPeers(peers, forPeers, logger);
  const started = undo.move();
  return { [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/**
 * Returns the dependencies of a node in a cluster: `forPeers` answers other nodes from this node
 * alone, `served` answers all others for the cluster.
 */
function serveCluster(
  parts: InterfacesParts,
  given: {
    readonly sources: OverviewSources;
    readonly own: OwnDependencies;
    readonly peers: NodeLinks;
    readonly undo: AsyncDisposableStack;
  },
): { readonly forPeers: ApiDependencies; readonly served: OwnDependencies } {
  const { config, records, host, guests, osRegistry, jobs, logger } = parts;
  const { sources, peers, undo } = given;
  const { nodeName } = config;
  const { instances, index, nodes, owns, clusters, store, membership } = records;
  const elsewhere = undo.use(new RunningElsewhere({ nodeName, peers, nodes, store, logger }));
  const overview = createClusterOverview(given.own.overview, {
    ...{ ...sources, nodes, peers, elsewhere },
  });
  const room = createNodeRoom({
    ...{ nodeName, owns, index, nodes, clusters },
    measureRoom: () => measureRoom(host.disks),
    measureUse: async (instance) => {
      const pid = guests.keeper.get(instance.uuid)?.machine.pid;
      return {
        memoryMiB: pid === undefined ? 0 : residentMiB(pid),
        // If its disks cannot be examined, all of its space may still be needed.
        diskBytes: await host.disks.ownBytes(instance).catch(() => 0),
      };
    },
    isActive: (job) => jobs.has(job),
  });
  const ifRoom = admittedJobs({ room, osRegistry, clusters, nicTaps: host.nicTaps });
  const migrationTarget = undo.use(newMigrationTarget(parts, room));
  const placement = { nodeName, room, nodes, index, elsewhere, clusters };
  const onItsNode = clusterJobs({
    ...{ nodeName, peers, nodes, instances, overview, membership, placement, migrationTarget },
  });
  return {
    forPeers: { ...given.own, migrationTarget, jobs: layerJobs([ifRoom], jobs) },
    served: {
      ...given.own,
      migrationTarget,
      overview,
      feed: undo.use(createFeed(parts, overview, () => elsewhere.facts())),
      giveRelaySecret: (name, secret) =>
        giveToNodes(name, secret, { ...{ nodeName, nodes, peers, relays: guests.relays } }),
      examineNodes: () => examineNodes(given.own.examineNodes(), { nodes, owns, peers }),
      jobs: layerJobs([onItsNode, ifRoom], jobs),
    },
  };
}

function createFeed(
  { records, guests, logger }: InterfacesParts,
  overview: Pick<Overview, 'summaryParts'>,
  facts: FeedSources['facts'],
): ClusterFeed {
  const { store, owns, nodes, jobs } = records;
  return new ClusterFeed({
    ...{ store, owns, facts, logger },
    summaryParts: () => overview.summaryParts(),
    listRunning: () => listRunning(guests.keeper),
    listNodes: () => nodes.list(),
    loadJobs: async (ids) => (await jobs.loadSome(ids)).map(summarizeJob),
  });
}

function newMigrationTarget(
  { config, records, host, guests, osRegistry, logger }: InterfacesParts,
  room: NodeRoom,
): MigrationTarget {
  const { owns, instances, membership, nodes, clusters } = records;
  const { disks, moving, images, applianceFiles, accelerators, network } = host;
  const { runner, bootViews, keeper } = guests;
  return createMigrationTarget({
    ...{ nodeName: config.nodeName, owns, instances, membership, nodes, room },
    ...{ disks, moving, isTaken: createIsTaken(records.peers), logger },
    checkMachine: async (nature) => {
      const accelerator = await accelerators.choose(nature.accelerator, undefined);
      const processor = await readProcessor(accelerator);
      requireFit(nature, { ...nature, qemu: await readQemuVersion(), accelerator, processor });
    },
    expectGuest: createExpectGuest({
      ...{ runner, keeper, instances, metad: guests.metad, logger, onLost: guests.tellLost },
      endConnections: (ended) => endConnections({ ...ended, namespacePath: network.namespacePath }),
    }),
    checkHere: (instance, signal) =>
      checkArrival(instance, signal, {
        ...{ runner, osRegistry, images, applianceFiles, clusters, bootViews, disks },
      }),
  });
}

/** Answers other nodes from this node alone, so that requests are never forwarded twice. */
function answerPeers(peers: NodeLinks, own: ApiDependencies, logger: Logger): void {
  peers.onStream = createConnectionApi({
    handlers: createApiRoutes(own),
    forwarding: null,
    logger,
  });
}

function ownSources(parts: InterfacesParts): OverviewSources {
  const { config, records, guests, osRegistry } = parts;
  const { clusters, instances, index, owns } = records;
  const { runner, orphans, guestReports, lifecycles, bootViews } = guests;
  return {
    nodeName: config.nodeName,
    instances,
    index,
    outcomes: records.outcomes,
    owns,
    clusters,
    runner,
    orphans,
    guestReports,
    lifecycles,
    bootViews,
    describeNode: () => describeNode(parts),
    listOs: () => describeAllOs(osRegistry, clusters),
  };
}

function ownDependencies(parts: InterfacesParts, sources: OverviewSources, clusterKey: ClusterKey) {
  const { version, config, records, host, guests, osRegistry, hookChecker, jobs, metrics, clock } =
    parts;
  const { clusters, nodes, instances, index, storeDescription } = records;
  const { disks, exports, catalogue } = host;
  const { keeper, metad, runner, guestReports, lifecycles, relays } = guests;
  const examine = (): Promise<DoctorReport> => examineHost({ ...parts, clusterKey });
  return {
    ...{
      version,
      clusters,
      nodes,
      instances,
      index,
      disks,
      exports,
      keeper,
      jobs,
      metad,
      osRegistry,
    },
    ...{ hookChecker, runner, guestReports, lifecycles, catalogue },
    imageLender: host.imageLender,
    archives: host.bootArchives,
    planBoot: (instance: InstanceRecord, name: string | null) =>
      previewBootPlan(instance, name, { clusters, archives: host.bootArchives }),
    ...{ osSearchPath: config.osSearchPath, logDir: config.paths.logDir, storeDescription },
    overview: createOwnOverview(sources),
    migrationTarget: noMigrationTarget(),
    ...{ clusterKey, clock, relays },
    giveRelaySecret: async (name, secret) => {
      await relays.give(name, secret);
      return { nodes: [config.nodeName], missing: [] };
    },
    issueJoinToken: (lifetimeS) => {
      const { common, membership } = records;
      return issueJoinToken(lifetimeS, { common, membership, paths: config.paths });
    },
    describeNode: sources.describeNode,
    examine,
    examineNodes: async () => [{ node: config.nodeName, report: await examine() }],
    metrics: async () => `${await metrics.render()}\n${await metad.metrics().catch(() => '')}`,
    removeNode: (name, options) => removeFromCluster(name, options, parts),
    describeSelf: () => ({ node: config.nodeName, version }),
  } satisfies Omit<ApiDependencies, 'openWeb' | 'feed'>;
}

function startKey({ config, records, logger }: InterfacesParts): ClusterKey {
  const { common, peers, nodes } = records;
  if (common === null || peers === null) return noClusterKey();
  return startClusterKey({ nodeName: config.nodeName, common, peers, nodes, logger });
}

function removeFromCluster(
  name: string,
  options: { readonly forgetInstances: boolean },
  { config, records, clock, logger }: InterfacesParts,
): Promise<void> {
  const { nodes, instances, index, jobs, peers, membership } = records;
  return removeNode(name, options, {
    ...{ nodeName: config.nodeName, nodes, instances, index, peers, membership, clock },
    failJobsOf: async (node) => {
      const isIts = (job: JobRecord): boolean => job.node === node;
      await failInterruptedJobs(isIts, 'the node was removed', { jobs, clock, logger });
    },
  });
}
