import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import { makeDirectoryDurably, removeHalves } from '#shared/files/durable.ts';
import type { Logger } from '#shared/log/log.ts';
import { readVersion } from '#shared/paths/read-version.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { startAutostart } from './autostart.ts';
import type { NodedConfig } from './config.ts';
import { createChildSupervisor } from '../host/child-supervisor.ts';
import { readBootId } from '../host/process-identity.ts';
import { INDEX_NAME } from '../content/images/cache-index.ts';
import { statusOf } from '../instances/describe-instance.ts';
import { forgetOldJobs } from '../jobs/forget-old-jobs.ts';
import { measurePlaces } from '../host/file-systems.ts';
import { promiseOf } from '../instances/record/promised-space.ts';
import { createNodeMetrics } from './node-metrics.ts';
import { sweepLogs } from '../host/install-log.ts';
import { sweepChannelCommands } from '../provision/os/channel-commands.ts';
import { createHookChecker } from '../provision/os/check-hooks.ts';
import { createHostCopies } from '../provision/os/host-copies.ts';
import { createOsRegistry } from '../provision/os/os-registry.ts';
import { createMigrationTargetClient } from '../cluster/migration/migration-target-client.ts';
import { endInterruptedMoves } from '../cluster/migration/end-interrupted-moves.ts';
import {
  createCopySweeper,
  createDepartureSweeper,
  createIsTaken,
} from '../cluster/migration/settle-moves.ts';
import { startReconciler } from './reconcile.ts';
import { type NodeGuests, startGuests } from './start-guests.ts';
import { startHost } from './start-host.ts';
import { startInterfaces } from './start-interfaces.ts';
import { startJobs } from './start-jobs.ts';
import { type NodeRecords, startRecords } from './start-records.ts';

/**
 * Starts all parts of a node. Each part depends only on earlier ones and has its own undo. Resolves
 * when the node is ready; `stop` ends it and leaves running instances alone. A failed start leaves
 * nothing behind.
 */
export async function startNode(
  config: NodedConfig,
  logger: Logger,
  environment: NodeJS.ProcessEnv,
): Promise<{ stop(): Promise<void> }> {
  const { paths, nodeName } = config;
  const clock = systemClock;
  const startedAtMs = clock.now();
  await makeDirectories(paths);
  const { nodeKeyFile, bootFile, imageCacheDir, cataloguesFile } = paths;
  const { clusterKeyFile, nextClusterKeyFile, formerClusterKeyFile, storeChoiceFile } = paths;
  // Half of a key file must not be left readable.
  const ofCluster = [clusterKeyFile, nextClusterKeyFile, formerClusterKeyFile, storeChoiceFile];
  const ofImages = [join(imageCacheDir, INDEX_NAME), cataloguesFile];
  await removeHalves([nodeKeyFile, bootFile, ...ofCluster, ...ofImages]);
  const children = createChildSupervisor({ dir: paths.childrenDir, logger, clock });
  // End helpers of an earlier daemon before their output is examined or marked as failed.
  await children.endPredecessors();
  await using undo = new AsyncDisposableStack();
  const records = undo.use(await startRecords(config, clock, logger));
  const host = undo.use(
    await startHost({ config, records, launch: children.launch, clock, logger, environment }),
  );
  const osRegistry = createOsRegistry({ searchPath: config.osSearchPath });
  const guests = undo.use(await startGuests(config, records, host, osRegistry, clock, logger));
  const hostCopies = createHostCopies(config.paths.hostCopiesDir, children.launch);
  await hostCopies.sweep();
  const hookChecker = createHookChecker({
    clusterDir: paths.hooksDir,
    applianceFile: paths.applianceHooksFile,
    hooksOf: (appliance) => host.applianceFiles.hooksOf(appliance),
    firstUid: config.machineUsers.first,
    mirrors: async () => Object.keys((await records.clusters.load()).packageMirrors ?? {}),
  });
  await sweepChannelCommands(config.paths.channelCommandsDir);
  const metrics = createNodeMetrics(startedAtMs);
  const jobs = startJobs({
    config,
    records,
    host,
    guests,
    osRegistry,
    hostCopies,
    hookChecker,
    metrics,
    clock,
    logger,
  });
  const stopJobs = (): Promise<void> => {
    records.endWaits();
    return jobs.stop();
  };
  undo.defer(stopJobs);
  const ofMoves = {
    ...{ nodeName, owns: records.owns, instances: records.instances, ...host, clock, logger },
    isTaken: createIsTaken(records.peers),
  };
  undo.use(
    startReconciler({
      ...{ records, engine: jobs, clock, logger },
      often: createDepartureSweeper(ofMoves),
      others: [createCopySweeper(ofMoves), () => sweepLogs(config.paths.logDir, records)],
    }),
  );
  const { instances, index, owns } = records;
  metrics.observe({
    activeJobs: () => jobs.activeStatuses(),
    instanceStates: async () =>
      (await index.list())
        .filter(({ primaryNode }) => owns(primaryNode))
        .map((instance) => statusOf(instance, guests.keeper.get(instance.uuid)?.machine ?? null)),
    halts: () => guests.keeper.list().flatMap(({ machine }) => machine.halt?.reason ?? []),
    guestsWithoutSecrets: () =>
      guests.keeper
        .list()
        .filter(({ kind, lostSecrets }) => kind === 'run' && lostSecrets.length > 0).length,
    guestBoots: async () =>
      (
        await Promise.all(
          guests.keeper
            .list()
            .filter(({ kind, isOrphan }) => kind === 'run' && !isOrphan)
            .map(({ machine }) => instances.findByUuid(machine.uuid)),
        )
      ).flatMap(
        (instance) => (instance && guests.guestReports.report(instance)?.boot?.status) ?? [],
      ),
    metadRestarts: () => guests.metad.restarts,
    relays: () => guests.relays.counts(),
    linkPaths: () => records.peers?.describe().links.map(({ path }) => path) ?? [],
    cacheBytes: async () => (await host.images.stats()).sizeBytes,
    places: () => measurePlaces(config.paths),
    promisedBytes: async () => (await promiseOf({ index, owns })).promisedBytes,
  });
  undo.use(endMovesOf(guests.interrupted, records, logger));
  undo.use(forgetOldJobs({ jobs: records.jobs, owns: records.owns, logger, clock }));
  undo.use(
    await startInterfaces({
      ...{
        version: readVersion(),
        startedAtMs,
        config,
        records,
        host,
        guests,
        osRegistry,
        hookChecker,
        jobs,
      },
      ...{ metrics, clock, logger },
    }),
  );
  const autostart = undo.use(
    startAutostart({
      ...{ instances, index, owns, isRunning: (uuid) => guests.runner.isRunning(uuid), jobs },
      isOffline: async () => (await records.nodes.flagsOf(nodeName)).offline,
      ...{ bootFile: paths.bootFile, bootId: readBootId(), maxStarts: config.maxStarts },
      ...{ logger, clock },
    }),
  );
  guests.onRunEnded((uuid, exit) => autostart.machineEnded(uuid, exit));
  logger.info('node.ready', {
    node: nodeName,
    root: paths.root,
    namespace: paths.networkNamespace,
  });

  const all = undo.move();
  return {
    stop: async () => {
      // First: the next daemon starts the remaining instances.
      await autostart[Symbol.asyncDispose]();
      // Watchers receive the ends of their jobs before the interfaces close.
      await stopJobs();
      await all.disposeAsync();
      logger.info('node.stopped');
    },
  };
}

/** Ends interrupted moves in the background: other nodes may be slow to answer. */
function endMovesOf(
  interrupted: NodeGuests['interrupted'],
  { owns, instances, peers }: NodeRecords,
  logger: Logger,
): AsyncDisposable {
  const ending = new AbortController();
  const ended =
    peers === null
      ? Promise.resolve()
      : endInterruptedMoves(
          interrupted,
          { owns, instances, clientOf: (node) => createMigrationTargetClient(peers, node), logger },
          ending.signal,
        );
  return {
    [Symbol.asyncDispose]: () => {
      ending.abort();
      return ended;
    },
  };
}

async function makeDirectories(paths: RootPaths): Promise<void> {
  // Files below must survive a power cut, and so must the path to them.
  await makeDirectoryDurably(paths.stateDir, 0o755);
  for (const dir of [paths.disksDir, paths.runDir, paths.logDir, paths.vmDir]) {
    // QEMU's user enters run/ and the appliance's directory. Private files below have their own
    // modes.
    await mkdir(dir, {
      recursive: true,
      mode: dir === paths.disksDir || dir === paths.logDir ? 0o700 : 0o755,
    });
  }
}
