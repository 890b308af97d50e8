import { mkdir } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import type { NodeInfo } from '#shared/contract/api.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { type Logger } from '#shared/log/log.ts';
import { SYSTEM_PATH } from '#shared/process/run.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createApiRoutes, type ApiDependencies } from './api/api-routes.ts';
import { createConnectionApi, startApiServer } from './api/api-server.ts';
import { createExportStore } from './backup/export-store.ts';
import { createClusterRepository } from './records/cluster-repository.ts';
import { followCluster } from './cluster/follow-cluster.ts';
import { joinCluster } from './cluster/join-cluster.ts';
import { createNodeRegistry } from './records/node-registry.ts';
import { openStore } from './records/open-store.ts';
import { createClusterJobs } from './cluster/cluster-jobs.ts';
import { createClusterOverview, createOwnOverview } from './cluster/overview.ts';
import { removeNode } from './cluster/remove-node.ts';
import { type NodedConfig } from './config.ts';
import { createInstanceDisks } from './disks/instance-disks.ts';
import { describeNode } from './doctor/describe-node.ts';
import { examineHost } from './doctor/examine-host.ts';
import { createAcceleratorChooser } from './hypervisor/accelerator-chooser.ts';
import { createHypervisor } from './hypervisor/hypervisor.ts';
import { residentMiB } from './host/process-facts.ts';
import { createImageCache } from './images/image-cache.ts';
import { createApplianceFiles } from './appliance/appliance-files.ts';
import { createGuestContent } from './install/guest-content.ts';
import { InstallRoom } from './install/install-room.ts';
import { Installer } from './install/installer.ts';
import { statusOf } from './instances/describe-instance.ts';
import { ExposedServices } from './instances/exposed-services.ts';
import { followGuests, GuestEvents } from './instances/guest-events.ts';
import { createInstanceRepository } from './records/instance-repository.ts';
import { InstanceRunner } from './instances/instance-runner.ts';
import { MachineKeeper } from './instances/machine-keeper.ts';
import { createViews } from './instances/views.ts';
import { failInterruptedJobs } from './jobs/fail-interrupted.ts';
import { JobEngine } from './jobs/job-engine.ts';
import { createJobRepository } from './jobs/job-repository.ts';
import { createMetadLink, type MetadLink } from './metad-link/metad-link.ts';
import { createChannelNetwork } from './network/channel-network.ts';
import { createNodeMetrics } from './node-metrics.ts';
import { createJobHandlers } from './operations/job-handlers.ts';
import { createOsRegistry } from './os/os-registry.ts';
import { createRapiRoutes, startRapi } from './rapi/rapi-server.ts';
import { recover } from './recover.ts';

export const VERSION = '0.1.0';
const projectDir = join(import.meta.dirname, '..');

/** Everything of one node, wired. Resolves when it can be used; `stop` ends it and leaves running instances alone. */
export async function startNode(
  config: NodedConfig,
  logger: Logger,
  environment: NodeJS.ProcessEnv,
): Promise<{ stop(): Promise<void> }> {
  const { paths, nodeName } = config;
  const clock = systemClock;
  const startedAtMs = clock.now();
  for (const dir of [paths.stateDir, paths.disksDir, paths.runDir, paths.logDir, paths.vmDir]) {
    // QEMU's user enters run/ and the appliance's directory; what is private below has its own mode.
    await mkdir(dir, {
      recursive: true,
      mode: dir === paths.disksDir || dir === paths.logDir ? 0o700 : 0o755,
    });
  }
  // A start that fails half way leaves nothing; a stop undoes in reverse order.
  await using undo = new AsyncDisposableStack();
  const opened = await openStore(paths, clock, logger);
  const { store } = opened;
  undo.defer(() => store.close());
  const recordProblems = createRecordProblems(logger);
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const nodes = createNodeRegistry(store, recordProblems);
  const link = undo.use(await joinCluster(opened, nodeName, nodes, paths, logger));
  // An embedded store has what this node made, also under an earlier name.
  const owns = (node: string | undefined): boolean => link === null || node === nodeName;
  const instances = createInstanceRepository(store, clock, recordProblems);
  const jobRepository = createJobRepository(store, recordProblems);
  const network = createChannelNetwork({ namespace: paths.networkNamespace, logger });
  undo.defer(() => network.close());
  undo.defer(async () => {
    await network.removeNamespace(); // stays as long as a TAP is in it
  });
  await network.ensureNamespace();
  const hypervisor = createHypervisor({ vmDir: paths.vmDir, logger, clock });
  const accelerators = createAcceleratorChooser(() => hypervisor.probeAccelerator());
  const images = createImageCache({
    dir: paths.imageCacheDir,
    maxBytes: config.imageCacheBytes,
    limits: async () => downloadLimitsOf(await clusters.load()),
    netrcFile: paths.netrcFile,
    logger,
    clock,
  });
  undo.defer(() => images.close());
  const osRegistry = createOsRegistry({ searchPath: config.osSearchPath });
  const disks = createInstanceDisks(paths.disksDir);
  const exports = createExportStore(paths.exportDir);
  await exports.sweep();
  const guestEvents = new GuestEvents();
  const nodeOptions = ['--disable-warning=ExperimentalWarning'];
  const applianceFiles = createApplianceFiles({
    dir: paths.applianceDir,
    builder: {
      command: process.execPath,
      args: [...nodeOptions, join(projectDir, 'appliance/main.ts')],
    },
    builderEnvironment: {
      PATH: SYSTEM_PATH,
      HOME: environment['HOME'] ?? '/root',
      GNT_ROOT: paths.root,
      ...(environment['GNT_CACHE'] !== undefined && { GNT_CACHE: environment['GNT_CACHE'] }),
    },
  });
  const metad = createMetadLink({
    paths,
    logger,
    clock,
    launcher: {
      command: process.execPath,
      args: [...nodeOptions, join(projectDir, 'metad/main.ts')],
    },
    content: createGuestContent({
      activeInstall: (uuid) => installer.activeInstall(uuid),
      findService: (uuid, name) => services.find(uuid, name),
      clusters,
      netrcFile: paths.netrcFile,
    }),
  });
  const views = createViews(instances, clusters);
  const keeper = new MachineKeeper({
    hypervisor,
    network,
    metad,
    logger,
    clock,
    onExit: (uuid, kind, exit) => logger.debug('machine.exit', { uuid, kind, exit: exit.reason }),
  });
  const services: ExposedServices = new ExposedServices({ clusters, instances, network, keeper });
  const runner = new InstanceRunner({
    instances,
    keeper,
    views,
    metad,
    disks,
    guestEvents,
    clock,
    chooseAccelerator: (wanted, context) => accelerators.choose(wanted, context),
  });
  const metrics = createNodeMetrics({
    startedAtMs,
    activeJobs: () => jobs.activeStatuses(),
    instanceStates: async () =>
      (await instances.list())
        .filter(({ primaryNode }) => owns(primaryNode))
        .map((instance) => statusOf(instance, keeper.get(instance.uuid) !== undefined)),
    metadRestarts: () => metad.restarts,
    cacheBytes: async () => (await images.stats()).sizeBytes,
  });
  const installer: Installer = new Installer({
    repository: instances,
    disks,
    images,
    applianceFiles,
    keeper,
    views,
    guestEvents,
    channelCommands: {
      dir: join(paths.runDir, 'channel'),
      root: paths.root,
      command: [process.execPath, ...nodeOptions, join(projectDir, 'cluster-cli/main.ts')],
    },
    chooseAccelerator: (wanted, context) => accelerators.choose(wanted, context),
    bootTimeoutMs: config.applianceBootTimeoutMs,
    logDir: paths.logDir,
    logger,
    clock,
    room: new InstallRoom({
      maxInstalls: config.maxInstalls,
      reserveMiB: config.installReserveMiB,
      availableMiB: () => freemem() / 1024 ** 2,
      takenMiB: (uuid) => {
        const kept = keeper.get(uuid);
        return kept === undefined ? 0 : residentMiB(kept.machine.pid);
      },
    }),
    onStageEnded: (stage, durationMs) => metrics.stageEnded(stage, durationMs),
  });

  undo.defer(() => stopMetad(metad, keeper, logger));
  await metad.start();
  await services.openPorts();
  undo.defer(followCluster({ store, services, keeper, metad, logger }));
  const eventsEnd = new AbortController();
  const following = followGuests(metad.events({ signal: eventsEnd.signal }), guestEvents, logger);
  undo.defer(async () => {
    eventsEnd.abort();
    await following;
  });
  await recover({
    hypervisor,
    network,
    metad,
    keeper,
    runner,
    views,
    instances,
    jobs: jobRepository,
    owns,
    logger,
    clock,
  });
  const jobs: JobEngine = new JobEngine({
    nodeName,
    repository: jobRepository,
    logger,
    clock,
    onEnded: (job) => metrics.jobEnded(job),
    handlers: createJobHandlers({
      nodeName,
      owns,
      clusters,
      instances,
      disks,
      images,
      osRegistry,
      installer,
      runner,
      services,
      exports,
      logDir: paths.logDir,
      hooksDir: paths.hooksDir,
      logger,
      clock,
    }),
  });
  const examine = (): ReturnType<typeof examineHost> =>
    examineHost({
      paths,
      applianceFiles,
      probeAccelerator: () => accelerators.probe(),
      metadPid: () => metad.pid,
      store: {
        description: opened.description,
        ask: () => clusters.load(),
        problems: () => recordProblems.list(),
      },
    });
  const describe = (): Promise<NodeInfo> =>
    describeNode({
      paths,
      nodeName,
      startedAtMs,
      version: VERSION,
      metad,
      disks,
      instances,
      owns,
      keeper,
      applianceFiles,
    });
  const overviewSources = { instances, owns, clusters, runner, describeNode: describe };
  const ownOverview = createOwnOverview(overviewSources);
  const own: ApiDependencies = {
    version: VERSION,
    clusters,
    nodes,
    instances,
    disks,
    exports,
    keeper,
    jobs,
    metad,
    osRegistry,
    osSearchPath: config.osSearchPath,
    logDir: paths.logDir,
    describeNode: describe,
    examine,
    metrics: async () => `${await metrics.render()}\n${await metad.metrics().catch(() => '')}`,
    storeDescription: opened.description,
    overview: ownOverview,
    removeNode: (name, options) =>
      removeNode(name, options, {
        ...{ nodeName, nodes, instances, peers: link },
        failJobsOf: (node) =>
          failInterruptedJobs((job) => job.node === node, 'its node was removed', {
            ...{ jobs: jobRepository, clock, logger },
          }),
      }),
  };
  const served =
    link === null
      ? own
      : {
          ...own,
          jobs: createClusterJobs({ nodeName, own: jobs, peers: link, nodes, instances }),
          overview: createClusterOverview(ownOverview, { ...overviewSources, nodes, peers: link }),
        };
  const forwarding = link && { peers: link, instances, owns };
  // Other nodes are answered from this node alone: nothing is forwarded twice.
  if (link !== null)
    link.onStream = createConnectionApi({ ...createApiRoutes(own), forwarding: null, logger });
  const api = await startApiServer(paths.nodedSocket, {
    ...{ ...createApiRoutes(served), forwarding, logger },
  });
  undo.defer(() => api.close());
  if (config.rapi !== null)
    undo.use(
      await startRapi(config.rapi, {
        routes: createRapiRoutes({ ...served, disksDir: paths.disksDir }),
        ...{ nodeName, logger, clock, onAnswered: metrics.rapiAnswered },
      }),
    );
  logger.info('node.ready', {
    node: nodeName,
    root: paths.root,
    namespace: paths.networkNamespace,
  });

  const all = undo.move();
  return {
    stop: async () => {
      await jobs.stop();
      await all.disposeAsync();
      logger.info('node.stopped');
    },
  };
}

/** While guests are on the channel they keep their metadata, secrets included; the next noded adopts the daemon. */
async function stopMetad(metad: MetadLink, keeper: MachineKeeper, logger: Logger): Promise<void> {
  const channels = keeper.list().filter((kept) => kept.device !== null).length;
  if (channels === 0) return metad.stop();
  logger.info('metad.left-running', { pid: metad.pid, channels });
  return metad.detach();
}
