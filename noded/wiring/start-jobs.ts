import { freemem } from 'node:os';
import type { Clock } from '#shared/clock/clock.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { Logger } from '#shared/log/log.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createFindElsewhere } from '../cluster/placement/find-elsewhere.ts';
import type { NodedConfig } from './config.ts';
import { createForeignLeases } from '../storage/fencing/foreign-leases.ts';
import { measurePlaces } from '../host/file-systems.ts';
import { residentMiB } from '../host/process-facts.ts';
import { InstallRoom } from '../provision/install/install-room.ts';
import { Installer } from '../provision/install/installer.ts';
import { createOpenInstallPackage } from '../provision/install/open-install-package.ts';
import { createJobEngine, type JobEngine } from '../jobs/job-engine.ts';
import { traitsOf } from '../jobs/opcode-traits.ts';
import { listConnections } from '../net/channel/list-connections.ts';
import type { NodeMetrics } from './node-metrics.ts';
import { createListHiddenValues } from '../instances/parameters/list-hidden-values.ts';
import { promiseOf } from '../instances/record/promised-space.ts';
import { createAuthorize } from '../operations/authorize.ts';
import { presenceOf } from '../cluster/peers/ask-peer.ts';
import { createJobHandlers } from '../operations/job-handlers.ts';
import { createRefuseOverQuota } from '../operations/refuse-over-quota.ts';
import type { HookChecker } from '../provision/os/check-hooks.ts';
import type { HostCopies } from '../provision/os/host-copies.ts';
import type { OsRegistry } from '../provision/os/os-registry.ts';
import { programCommand } from './program-command.ts';
import { createQuotaClaims } from '../records/quota-claims.ts';
import { createSignatures } from '../content/signatures/signatures.ts';
import type { NodeGuests } from './start-guests.ts';
import type { NodeHost } from './start-host.ts';
import type { NodeRecords } from './start-records.ts';

export interface JobsParts {
  readonly config: NodedConfig;
  readonly records: NodeRecords;
  readonly host: NodeHost;
  readonly guests: NodeGuests;
  readonly osRegistry: OsRegistry;
  readonly hostCopies: HostCopies;
  readonly hookChecker: HookChecker;
  readonly metrics: Pick<NodeMetrics, 'jobEnded' | 'stageEnded'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Starts the engine for operations on this node's instances. Stop it before the interfaces, so that
 * watchers receive the ends of their jobs.
 */
export function startJobs(parts: JobsParts): JobEngine {
  const { config, records, host, guests, osRegistry, hostCopies, hookChecker } = parts;
  const { metrics, clock, logger } = parts;
  const { paths, nodeName } = config;
  const { owns, peers } = records;
  const { clusters, instances, nodes } = records.patient;
  const {
    disks,
    snapshots,
    moving,
    images,
    exports,
    applianceFiles,
    bootArchives: archives,
    nicTaps,
    nat,
    lvm,
    zfs,
  } = host;
  const { runner, bootViews, services, orphans, guestReports, lifecycles, keeper, metad } = guests;
  return createJobEngine({
    ...{ nodeName, repository: records.jobs, outcomes: records.outcomes, logger, clock },
    authorize: createAuthorize(
      instances,
      createRefuseOverQuota({
        index: records.index,
        instances,
        claims: createQuotaClaims(records.store, records.jobs),
      }),
    ),
    listHiddenValues: createListHiddenValues({ instances, clusters, metad }),
    onEnded: (job) => metrics.jobEnded(job),
    locksOf: (opcode) => traitsOf(opcode).locks(opcode, orphans.list()),
    handlers: createJobHandlers({
      membership: records.membership,
      nodes,
      snapshots,
      moving,
      leases: createForeignLeases({
        ...{ store: records.store, ttlMs: config.sharedLeaseMs, clock },
        server: records.common?.server ?? null,
      }),
      nicTaps,
      nat,
      peers: records.peers,
      ...{
        nodeName,
        owns,
        clusters,
        instances,
        outcomes: records.outcomes,
        disks,
        lvm,
        zfs,
        images,
        osRegistry,
        hostCopies,
        exports,
      },
      ...{ installer: newInstaller(parts), runner, services, orphans, guestReports, lifecycles },
      presenceOf: (node) => (peers === null ? Promise.resolve('gone') : presenceOf(peers, node)),
      measurePlaces: () => measurePlaces(paths),
      promiseOfDisks: () => promiseOf(records),
      findElsewhere: createFindElsewhere(peers, records.nodes, nodeName),
      ...{ keeper, metad },
      listConnections: (at) =>
        listConnections({ ...at, namespacePath: host.network.namespacePath }),
      ...{ applianceFiles, hookChecker, bootViews, archives, logDir: paths.logDir, logger, clock },
    }),
  });
}

function newInstaller({
  config,
  records,
  host,
  guests,
  hostCopies,
  metrics,
  clock,
  logger,
}: JobsParts): Installer {
  const { paths } = config;
  const { disks, images, applianceFiles, accelerators } = host;
  const { keeper, views, bootViews, guestEvents, activeInstalls } = guests;
  return new Installer({
    ...{
      repository: records.instances,
      outcomes: records.outcomes,
      disks,
      images,
      applianceFiles,
      keeper,
      views,
      bootViews,
      guestEvents,
    },
    active: activeInstalls,
    openPackage: createOpenInstallPackage(records.clusters, paths.netrcFile),
    signatures: createSignatures({
      loadKeys: async () => (await records.clusters.load()).imageKeys ?? {},
      limits: async () => downloadLimitsOf(await records.clusters.load()),
      netrcFile: paths.netrcFile,
      gpgv: { users: config.machineUsers, dir: paths.runDir },
    }),
    hostCopies,
    channelCommands: {
      dir: paths.channelCommandsDir,
      root: paths.root,
      command: programCommand('cluster-cli'),
    },
    chooseAccelerator: (wanted, context) => accelerators.choose(wanted, context),
    bootTimeoutMs: config.applianceBootTimeoutMs,
    room: new InstallRoom({
      maxInstalls: config.maxInstalls,
      reserveMiB: config.installReserveMiB,
      availableMiB: () => freemem() / MIB,
      takenMiB: (uuid) => {
        const kept = keeper.get(uuid);
        return kept === undefined ? 0 : residentMiB(kept.machine.pid);
      },
    }),
    onStageEnded: (stage, durationMs) => metrics.stageEnded(stage, durationMs),
    ...{ logDir: paths.logDir, logger, clock },
  });
}
