import { lookup } from 'node:dns/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { ClusterRecord, NodeInfo } from '#shared/contract/api.ts';
import { reachPolicyOf } from '#shared/contract/guest-reach.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { createApiRoutes, type ApiDependencies } from '../api/http/api-routes.ts';
import { createConnectionApi, startApiServer } from '../api/http/api-server.ts';
import { createAdmittedJobs } from '../cluster/placement/admitted-jobs.ts';
import type { MigrationTarget } from '../cluster/migration/migration-target-contract.ts';
import { createMigrationTarget } from '../cluster/migration/migration-target.ts';
import { noMigrationTarget } from '../cluster/migration/no-migration-target.ts';
import { createExpectGuest } from '../cluster/migration/incoming-guest.ts';
import { createClusterJobs } from '../cluster/cluster-jobs.ts';
import {
  createClusterOverview,
  createOwnOverview,
  type OverviewSources,
} from '../cluster/membership/overview.ts';
import { issueJoinToken } from '../cluster/membership/join-tokens.ts';
import { createNodeRoom, type NodeRoom } from '../cluster/placement/node-room.ts';
import { followRunningElsewhere } from '../cluster/membership/running-elsewhere.ts';
import { removeNode } from '../cluster/membership/remove-node.ts';
import {
  noClusterKey,
  startClusterKey,
  type ClusterKey,
} from '../cluster/membership/start-cluster-key.ts';
import { createIsTaken } from '../cluster/migration/settle-moves.ts';
import type { NodedConfig } from './config.ts';
import { describeNode } from '../operations/doctor/describe-node.ts';
import { listOpenGuests } from '../instances/machines/cards-of-machines.ts';
import type { DiskFacts } from '../operations/doctor/examine-disks.ts';
import { examineHost } from '../operations/doctor/examine-host.ts';
import { lookAtVolumes, type VolumeFacts } from '../operations/doctor/volume-facts.ts';
import { measureRoom } from '../host/measure-room.ts';
import { residentMiB } from '../host/process-facts.ts';
import { readQemuVersion } from '../vmm/qemu-command.ts';
import { readProcessor, requireFit } from '../vmm/machine-nature.ts';
import { endConnections } from '../net/channel/end-connections.ts';
import { previewBootPlan } from '../instances/view/preview-boot-plan.ts';
import { listNamedAppliances } from '../instances/record/appliance-users.ts';
import { failInterruptedJobs } from '../jobs/fail-interrupted.ts';
import type { JobEngine } from '../jobs/job-engine.ts';
import type { NodeMetrics } from './node-metrics.ts';
import { checkArrival } from '../operations/check-arrival.ts';
import type { HookChecker } from '../provision/os/check-hooks.ts';
import { describeAllOs } from '../provision/os/describe-os.ts';
import type { OsRegistry } from '../provision/os/os-registry.ts';
import type { PeerLink } from '../cluster/peers/peer-link.ts';
import { readIndexed } from '../records/read-indexed.ts';
import { listAbandoned, listForgotten, listLeft, listNobodys } from './list-leftovers.ts';
import { createRapiRoutes, startRapi } from '../api/rapi/rapi-server.ts';
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

/** The API on the node's socket, the same for other nodes of the cluster, and the remote API. */
export async function startInterfaces(parts: InterfacesParts): Promise<AsyncDisposable> {
  const { config, records, metrics, clock, logger } = parts;
  const { paths, nodeName } = config;
  const { instances, owns, peers } = records;
  const sources = ownSources(parts);
  await using undo = new AsyncDisposableStack();
  const clusterKey = undo.use(startKey(parts));
  const alone = ownDependencies(parts, sources, clusterKey);
  const { own, served } =
    peers === null
      ? { own: alone, served: alone }
      : serveCluster(parts, { sources, own: alone, peers, undo });
  const forwarding = peers && { peers, instances, owns };
  if (config.rapi !== null) {
    const onAnswered = metrics.rapiAnswered;
    const routes = createRapiRoutes({ ...served, disksDir: paths.disksDir });
    undo.use(await startRapi(config.rapi, { routes, nodeName, logger, clock, onAnswered }));
  }
  // The node is ready when its own socket answers, so that is the last that can fail.
  const api = await startApiServer(paths.nodedSocket, {
    handlers: createApiRoutes(served),
    forwarding,
    logger,
  });
  undo.defer(() => api.close());
  // Nothing of theirs is accepted by a start that fails.
  if (peers !== null) answerPeers(peers, own, logger);
  const all = undo.move();
  return { [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/**
 * What a node with others beside it answers: to them from itself alone, to everybody else from all.
 */
function serveCluster(
  parts: InterfacesParts,
  given: {
    readonly sources: OverviewSources;
    readonly own: ApiDependencies;
    readonly peers: PeerLink;
    readonly undo: AsyncDisposableStack;
  },
): { readonly own: ApiDependencies; readonly served: ApiDependencies } {
  const { config, records, host, guests, osRegistry, jobs, logger } = parts;
  const { sources, peers, undo } = given;
  const { nodeName } = config;
  const { instances, index, nodes, owns, clusters, store, membership } = records;
  const elsewhere = undo.use(followRunningElsewhere({ nodeName, peers, nodes, store, logger }));
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
        // An instance whose disks cannot be looked at may still take all of them.
        diskBytes: await host.disks.ownBytes(instance).catch(() => 0),
      };
    },
    isActive: (job) => jobs.has(job),
  });
  const admitted = createAdmittedJobs({ own: jobs, room, osRegistry, clusters, cards: host.cards });
  const migrationTarget = undo.use(newMigrationTarget(parts, room));
  const placement = { nodeName, room, nodes, index, elsewhere, clusters };
  const ofAll = createClusterJobs({
    ...{ nodeName, own: admitted, peers, nodes, instances, overview, membership, placement },
    migrationTarget,
  });
  return {
    own: { ...given.own, migrationTarget, jobs: admitted },
    served: { ...given.own, migrationTarget, overview, jobs: ofAll },
  };
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

/** Other nodes are answered from this node alone: nothing is forwarded twice. */
function answerPeers(peers: PeerLink, own: ApiDependencies, logger: Logger): void {
  peers.onStream = createConnectionApi({
    handlers: createApiRoutes(own),
    forwarding: null,
    logger,
  });
}

function ownSources(parts: InterfacesParts): OverviewSources {
  const { version, startedAtMs, config, records, host, guests, osRegistry } = parts;
  const { paths, nodeName } = config;
  const { clusters, instances, index, owns, nodes } = records;
  const { disks, applianceFiles } = host;
  const { metad, keeper, runner, orphans, guestReports, lifecycles, bootViews } = guests;
  const describe = (): Promise<NodeInfo> =>
    describeNode({
      ...{ paths, nodeName, startedAtMs, version, metad, disks, index, owns, keeper },
      ...{ applianceFiles, clusters, nodes, orphans, membership: records.membership },
    });
  return {
    nodeName,
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
    describeNode: describe,
    listOs: () => describeAllOs(osRegistry, clusters),
  };
}

/** What this node answers from, without asking others. */
function ownDependencies(parts: InterfacesParts, sources: OverviewSources, clusterKey: ClusterKey) {
  const { version, config, records, host, guests, osRegistry, hookChecker, jobs, metrics } = parts;
  const { clusters, nodes, instances, index, storeDescription, problems } = records;
  const { disks, exports, catalogue, applianceFiles, accelerators } = host;
  const { keeper, metad, orphans, runner, guestReports, lifecycles } = guests;
  const isOwn = ({ primaryNode }: { readonly primaryNode: string }): boolean =>
    records.owns(primaryNode);
  const listOwn = async () => (await Array.fromAsync(readIndexed(records, isOwn))).flat();
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
    archives: host.bootArchives,
    planBoot: (instance: InstanceRecord, name: string | null) =>
      previewBootPlan(instance, name, { clusters, archives: host.bootArchives }),
    ...{ osSearchPath: config.osSearchPath, logDir: config.paths.logDir, storeDescription },
    overview: createOwnOverview(sources),
    migrationTarget: noMigrationTarget(),
    clusterKey,
    issueJoinToken: (lifetimeS) => {
      const { common, membership } = records;
      return issueJoinToken(lifetimeS, { common, membership, paths: config.paths });
    },
    describeNode: sources.describeNode,
    examine: () =>
      examineHost({
        makesNetworks: async () =>
          (await clusters.listNetworks()).some(
            ({ connections }) => ownValue(connections, config.nodeName)?.mode === 'nat',
          ),
        networks: () => host.nat.report(),
        ...{ paths: config.paths, applianceFiles, isolation: config },
        appliances: () => listNamedAppliances({ clusters, instances: { list: listOwn } }),
        diskFacts: async () => {
          const own = await listOwn();
          const shared = await examineShared(parts);
          const [volumes, zfs] = await Promise.all([examineVolumes(parts), examineZvols(parts)]);
          const reached = own.filter(
            ({ diskTemplate }) => diskTemplate !== 'sharedfile' || shared?.problem === null,
          );
          return {
            instances: own,
            totalBytes: await disks.totalBytes(),
            ofNobody: [
              ...(await listNobodys(parts, [...volumes.own, ...zfs.own])),
              ...(await listForgotten(reached, parts)),
            ],
            left: await listLeft(parts),
            abandoned: await listAbandoned(parts),
            shared,
            volumes: isOfConcern(volumes, volumes.vgName) ? volumes : null,
            zfs: isOfConcern(zfs, zfs.zfsPool) ? zfs : undefined,
            halted: keeper.list().flatMap((kept) => (kept.machine.halt ? [kept.instanceName] : [])),
          };
        },
        lowSpacePercent: async () => (await loadCluster(records))?.lowSpacePercent,
        bootFacts: () =>
          keeper.list().flatMap(({ machine, instanceName }) => {
            const bootEnv = sources.bootViews.state(machine.uuid);
            return bootEnv === null ? [] : [{ instance: instanceName, bootEnv }];
          }),
        lostSecrets: () =>
          keeper
            .list()
            .filter(({ kind }) => kind === 'run')
            .map(({ instanceName, lostSecrets }) => ({
              instance: instanceName,
              names: lostSecrets,
            })),
        probeAccelerator: () => accelerators.probe(),
        metadPid: () => metad.pid,
        orphans: () => orphans.list(),
        removedAtMs: () => records.membership.removedAtMs(),
        isOffline: async () => (await records.nodes.flagsOf(config.nodeName)).offline,
        storeReach: {
          description: storeDescription,
          resolve: async (host) => (await lookup(host, { all: true })).map((one) => one.address),
          readPolicy: async () => reachPolicyOf(await clusters.load()),
          listOpenGuests: () => listOpenGuests(config.paths.vmDir, records.instances),
        },
        store: {
          description: storeDescription,
          ask: () => clusters.load(),
          risks: async () => (await records.store.risks?.()) ?? [],
          problems: () => problems.list(),
          renewal: () => clusterKey.describe(),
        },
      }),
    metrics: async () => `${await metrics.render()}\n${await metad.metrics().catch(() => '')}`,
    removeNode: (name, options) => removeFromCluster(name, options, parts),
  } satisfies ApiDependencies;
}

/** A cluster's record that is gone is a finding of its own, and hides none of the others. */
async function loadCluster({
  clusters,
}: Pick<NodeRecords, 'clusters'>): Promise<ClusterRecord | undefined> {
  return clusters.load().catch((error: unknown) => {
    if (isAppError(error)) return undefined;
    throw error;
  });
}

async function examineShared({ records, host }: InterfacesParts): Promise<DiskFacts['shared']> {
  const folder = (await loadCluster(records))?.sharedFileStorageDir;
  if (folder === undefined) return null;
  const problem = await host.shared.require().then(() => null, messageOf);
  return { folder, problem };
}

async function examineVolumes(
  parts: InterfacesParts,
): Promise<VolumeFacts & { readonly vgName: string | undefined }> {
  const { config, records, host } = parts;
  const { vgName } = (await loadCluster(records)) ?? {};
  const here = { nodeName: config.nodeName, owns: records.owns };
  return { ...(await lookAtVolumes(host.lvm, vgName, here)), vgName };
}

async function examineZvols(
  parts: InterfacesParts,
): Promise<VolumeFacts & { readonly zfsPool: string | undefined }> {
  const { config, records, host } = parts;
  const { zfsPool } = (await loadCluster(records)) ?? {};
  const here = { nodeName: config.nodeName, owns: records.owns };
  return { ...(await lookAtVolumes(host.zfs, zfsPool, here)), zfsPool };
}

/** Whether there are volumes, or somebody wants them. */
function isOfConcern({ groups, problem }: VolumeFacts, place: string | undefined): boolean {
  return place !== undefined || problem !== null || (groups ?? []).length > 0;
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
