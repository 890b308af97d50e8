import { RelaySecrets } from '../../../noded/net/relay/relay-secrets.ts';
import { createRelays } from '../../../noded/net/relay/relays.ts';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { after, before, type TestContext } from 'node:test';
import type { NodeInfo } from '#shared/contract/api.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createApiRoutes, type ApiDependencies } from '../../../noded/api/http/api-routes.ts';
import type { Forwarding } from '../../../noded/api/http/forward.ts';
import { openLoopback } from '../../../noded/api/web/open-loopback.ts';
import { startApiServer, type ServedApi } from '../../../noded/api/http/api-server.ts';
import { createImageCatalogue } from '../../../noded/content/catalogue/image-catalogue.ts';
import { ImageLender } from '../../../noded/content/images/lend-image.ts';
import { createExportStore } from '../../../noded/instances/backup/export-store.ts';
import { DEFAULT_FIRST_MACHINE_UID, planMachineUsers } from '../../../noded/host/machine-users.ts';
import { createHookChecker } from '../../../noded/provision/os/check-hooks.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { noClusterKey } from '../../../noded/cluster/membership/start-cluster-key.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { previewBootPlan } from '../../../noded/instances/view/preview-boot-plan.ts';
import { ClusterFeed } from '../../../noded/cluster/feed/cluster-feed.ts';
import { summarizeJob } from '../../../noded/cluster/feed/summarize-job.ts';
import { listRunning } from '../../../noded/instances/machines/watch-machines.ts';
import { createOwnOverview } from '../../../noded/cluster/membership/overview.ts';
import { createNodeRegistry } from '../../../noded/records/node-registry.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createOrphans } from '../../../noded/instances/machines/orphans.ts';
import { createJobEngine } from '../../../noded/jobs/job-engine.ts';
import type { JobHandlers } from '../../../noded/jobs/job-handler.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { createOsRegistry } from '../../../noded/provision/os/os-registry.ts';
import { noMigrationTarget } from '../../../noded/cluster/migration/no-migration-target.ts';
import { createTestOutcomes } from './test-outcomes.ts';
import { ManualClock } from './manual-clock.ts';
import { createOpcode } from './opcodes.ts';
import { createFakeGuests } from './fake-guests.ts';
import { createLabBootViews } from './lab-boot-views.ts';

let top = '';
let count = 0;
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-api-'));
});
after(() => rm(top, { recursive: true, force: true }));

/** A valid report of a node. */
export const node: NodeInfo = {
  name: 'node1',
  version: '0.0.0',
  root: '/',
  pid: 1,
  startedAtMs: 0,
  metad: { pid: null, restarts: 0 },
  networkNamespace: 'gnt-com',
  cpus: 2,
  memoryMiB: 4096,
  memoryFreeMiB: 1024,
  diskBytes: 200 * 1024 ** 3,
  diskFreeBytes: 1,
  instances: 0,
  instancesRunning: 0,
  removedAtMs: null,
  orphans: [],
  appliance: { state: 'missing', detail: 'none yet' },
  dataLinks: null,
  flags: { drained: false, offline: false },
};

interface Overrides {
  readonly describeNode?: ApiDependencies['describeNode'];
  readonly forwarding?: Forwarding;
}

/** The node's API with real repositories on a store of its own, and machines that run nothing. */
export async function createApiLab(t: TestContext, overrides: Overrides = {}) {
  count += 1;
  const paths = createRootPaths(join(top, String(count)));
  const clock = new ManualClock();
  const logger = silentLogger;
  const store = createSqliteStore({ path: paths.storeFile, clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  await nodes.registerAlone('node1');
  const problems = createRecordProblems(silentLogger);
  const instances = createInstanceRepository(store, clock, problems);
  const index = startInstanceIndex({ store, problems, logger });
  t.after(() => index[Symbol.asyncDispose]());
  const disks = createInstanceDisks(paths.disksDir);
  const { hypervisor, metad, ...guests } = createFakeGuests({ clusters, instances, disks, clock });
  const { views, keeper, runner, guestReports, guestEvents, lifecycles } = guests;
  const handler = {
    prepare: () =>
      Promise.resolve((context: { report: { log(line: string): void } }) => {
        context.report.log('done');
        return Promise.resolve({ fine: true });
      }),
  };
  const repository = createJobRepository(store, createRecordProblems(silentLogger));
  const jobs = createJobEngine({
    repository,
    outcomes: createTestOutcomes(paths.outcomesDir, repository, instances),
    authorize: () => Promise.resolve(),
    listHiddenValues: () => Promise.resolve([]),
    nodeName: 'node1',
    logger,
    clock,
    locksOf: () => [],
    handlers: { INSTANCE_SHUTDOWN: handler } as unknown as JobHandlers,
  });
  const describeNode =
    overrides.describeNode ?? (() => Promise.reject(new Error('internal detail of a bug')));
  const overview = createOwnOverview({
    ...{
      nodeName: 'node1',
      instances,
      index,
      outcomes: { removalOf: () => undefined },
      owns: () => true,
      clusters,
      runner,
      guestReports,
      lifecycles,
      bootViews: createLabBootViews(clusters),
    },
    describeNode,
    listOs: () => Promise.resolve([]),
    orphans: createOrphans({
      ...{ instances, keeper, views, owns: () => true, logger, clock },
    }),
  });
  const feed = new ClusterFeed({
    ...{ store, logger, owns: () => true, summaryParts: () => overview.summaryParts() },
    listRunning: () => listRunning(keeper),
    facts: () => Promise.resolve(new Map()),
    listNodes: () => nodes.list(),
    loadJobs: async (ids) => (await repository.loadSome(ids)).map(summarizeJob),
  });
  t.after(() => feed[Symbol.asyncDispose]());
  const relays = createRelays({
    ...{ clusters, instances, hasChannel: () => false, clock, logger },
    secrets: new RelaySecrets(),
  });
  const dependencies = {
    version: '0.0.0',
    clusters,
    nodes,
    instances,
    index,
    disks,
    exports: createExportStore(paths.exportDir),
    imageLender: new ImageLender({ findHeld: () => Promise.resolve(undefined) }),
    catalogue: createImageCatalogue({
      ...{ file: paths.cataloguesFile, importedDir: paths.importedImagesDir, clock },
      images: { holds: () => Promise.resolve(false) },
      listPathsInUse: () => Promise.resolve(new Set()),
      fetchSmall: () => Promise.reject(new Error('nobody is asked here')),
      gpgv: { users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID), dir: paths.runDir },
      machine: 'amd64',
    }),
    keeper,
    runner,
    guestReports,
    lifecycles,
    jobs,
    metad,
    osRegistry: createOsRegistry({ searchPath: [] }),
    osSearchPath: [],
    hookChecker: createHookChecker({
      ...{ clusterDir: paths.hooksDir, applianceFile: paths.applianceHooksFile },
      hooksOf: () => Promise.resolve([]),
      firstUid: DEFAULT_FIRST_MACHINE_UID,
      mirrors: () => Promise.resolve([]),
    }),
    logDir: paths.logDir,
    archives: { list: () => Promise.resolve([]) },
    planBoot: (instance, name) =>
      previewBootPlan(instance, name, { clusters, archives: { find: () => null } }),
    describeNode,
    examine: () => Promise.resolve({ ok: true, findings: [] }),
    examineNodes: () => Promise.resolve([]),
    metrics: () => Promise.resolve('gnt_up 1\n'),
    storeDescription: 'sqlite',
    clusterKey: noClusterKey(),
    clock,
    issueJoinToken: () => Promise.reject(new Error('nobody joins here')),
    overview,
    removeNode: () => Promise.resolve(),
    feed,
    describeSelf: () => ({ node: 'node1', version: '0.0.0' }),
    openWeb: (port: number, signal: AbortSignal): Promise<Readable> =>
      openLoopback(port, signal, {
        ...{ ...served, nodeName: 'node1', version: '0.0.0', clock: systemClock, instances },
        socketPath: paths.nodedSocket,
      }),
    relays,
    giveRelaySecret: async (name, secret) => {
      await relays.give(name, secret);
      return { nodes: ['node1'], missing: [] };
    },
    migrationTarget: noMigrationTarget(),
  } satisfies ApiDependencies;
  const served: ServedApi = {
    handlers: createApiRoutes(dependencies),
    forwarding: overrides.forwarding ?? null,
    logger,
  };
  const server = await startApiServer(paths.nodedSocket, served);
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await server.close();
    isOpen = false;
  };
  t.after(close);
  const start = async (communication: boolean): Promise<{ name: string; uuid: string }> => {
    const name = `web${randomUUID().slice(0, 8)}`;
    const record = await instances.create(
      planNewInstance(createOpcode({ name, communication }), {
        nodeName: 'node1',
        newUuid: randomUUID,
        newMac: () => 'aa:00:00:00:00:01',
      }),
    );
    await keeper.start({
      instance: record,
      kind: 'run',
      withInstanceNics: false,
      makeView: communication
        ? (device, revision) => views.forRun(record.uuid, device, revision)
        : null,
      makeSpec: (nics) =>
        Promise.resolve({
          uuid: record.uuid,
          name,
          smbios: { uuid: record.instanceId },
          memoryMiB: 64,
          vcpus: 1,
          accelerator: 'tcg',
          disks: [],
          nics,
          noReboot: false,
        }),
    });
    return { name, uuid: record.uuid };
  };
  return {
    ...{ guestEvents, guestReports, keeper },
    path: paths.nodedSocket,
    root: paths.root,
    dependencies,
    served,
    metad,
    hypervisor,
    close,
    start,
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** Reads the whole answer of a request that has been ended. */
export async function readAnswer(request: ClientRequest): Promise<Answer> {
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const { statusCode = 0, headers } = response;
  return { status: statusCode, headers, text: await readText(response) };
}

/** One request, whole. */
export function ask(
  socketPath: string,
  method: string,
  path: string,
  body?: string | Buffer,
): Promise<Answer> {
  return readAnswer(httpRequest({ socketPath, method, path }).end(body));
}

/** Asks for a raw stream; resolves with the status line and the socket. */
export function upgrade(
  socketPath: string,
  path: string,
): Promise<{ head: string; socket: Socket }> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: noded\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`,
    );
    socket.once('data', (bytes: Buffer) => resolve({ head: bytes.toString(), socket }));
    socket.once('error', reject);
  });
}
