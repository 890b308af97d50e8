import { every } from '#shared/clock/every.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type { Logger } from '#shared/log/log.ts';
import { isAllowedRepository } from '../netboot/load-boot-plan.ts';
import { createPromisedTrees } from '../netboot/promised-trees.ts';
import { followCluster } from '../cluster/membership/follow-cluster.ts';
import type { Membership } from '../cluster/membership/membership.ts';
import type { NodedConfig } from './config.ts';
import { createEnterShared } from '../storage/fencing/enter-shared.ts';
import type { MachineExit } from '../vmm/machine.ts';
import { createGuestContent } from '../provision/install/guest-content.ts';
import type { ActiveInstall } from '../provision/install/install-request.ts';
import { createOpenInstallPackage } from '../provision/install/open-install-package.ts';
import { createBootViews, type BootViews } from '../instances/view/boot-views.ts';
import { ExposedServices } from '../instances/machines/exposed-services.ts';
import {
  createGuestEvents,
  followGuests,
  type GuestEvents,
} from '../instances/reports/guest-events.ts';
import { createGuestReports, type GuestReports } from '../instances/reports/guest-reports.ts';
import { InstanceRunner } from '../instances/instance-runner.ts';
import { MachineKeeper } from '../instances/machines/machine-keeper.ts';
import { createOrphans, type Orphans } from '../instances/machines/orphans.ts';
import { followHalted } from '../instances/machines/resume-halted.ts';
import { createViews, type Views } from '../instances/view/views.ts';
import { createCloudCredentials } from '../instances/identity/cloud-credentials.ts';
import { createIdentities } from '../instances/identity/identities.ts';
import { createAuditLog } from '../instances/run-lists/audit-log.ts';
import { collectRunLists } from '../instances/run-lists/collect-run-lists.ts';
import { createLifecycles } from '../instances/run-lists/lifecycles.ts';
import type { Lifecycles } from '../instances/run-lists/lifecycles-contract.ts';
import { type Relays, createRelays } from '../net/relay/relays.ts';
import { RelaySecrets } from '../net/relay/relay-secrets.ts';
import { createMetadLink, type MetadLink } from '../net/metad-link/metad-link.ts';
import type { OsRegistry } from '../provision/os/os-registry.ts';
import { parseOsName } from '../provision/os/os-name.ts';
import { programCommand } from './program-command.ts';
import { recover, settlePortsOf } from './recover.ts';
import type { NodeHost } from './start-host.ts';
import type { NodeRecords } from './start-records.ts';

/**
 * The QEMU processes of this node and the metadata of their guests. Those of an earlier daemon are
 * taken over.
 */
export interface NodeGuests extends AsyncDisposable {
  readonly metad: MetadLink;
  readonly keeper: MachineKeeper;
  readonly views: Views;
  readonly services: ExposedServices;
  readonly runner: InstanceRunner;
  readonly orphans: Orphans;
  readonly guestEvents: GuestEvents;
  readonly guestReports: GuestReports;
  readonly lifecycles: Lifecycles;
  readonly relays: Relays;
  /**
   * Installations under way, by instance. The installer maintains them, and guests fetch their bulk
   * content through them.
   */
  readonly activeInstalls: Map<string, ActiveInstall>;
  readonly bootViews: BootViews;
  /** Jobs that ended with the earlier daemon. */
  readonly interrupted: readonly JobRecord[];
  /** Adds a listener for ends of normal runs. It is called after the cleanup. */
  readonly onRunEnded: (listener: RunEndListener) => void;
  /**
   * Reports a lost guest of an incoming migration, whose QEMU process never became a normal run.
   */
  readonly tellLost: (uuid: string) => void;
}

type RunEndListener = (uuid: string, exit: Pick<MachineExit, 'reason'>) => void;

/** A look-up per orphan is cheap, and a healthy node has none. */
const ORPHAN_INTERVAL_MS = 10_000;

export async function startGuests(
  { paths, nodeName, credentialsDir }: NodedConfig,
  records: NodeRecords,
  host: NodeHost,
  osRegistry: Pick<OsRegistry, 'diagnose'>,
  clock: Clock,
  logger: Logger,
): Promise<NodeGuests> {
  const { clusters, instances } = records;
  const { network, nicTaps, hypervisor, accelerators, disks } = host;
  const [command, ...args] = programCommand('metad');
  const metad = createMetadLink({ paths, logger, clock, launcher: { command, args } });
  const guestEvents = createGuestEvents();
  const audit = createAuditLog(paths.logDir);
  const lifecycles = createLifecycles({
    ...{ instances, guestEvents, logger, clock, audit },
    machines: {
      get: (uuid) => keeper.get(uuid),
      whenGone: (uuid) => keeper.whenGone(uuid),
      kill: (uuid) => keeper.kill(uuid),
      publish: (uuid) =>
        keeper.republish(uuid, (device, revision) => views.asGiven(uuid, device, revision)),
    },
    collect: async ({ osType, runLists, communication, dialects }) => {
      if (!communication || !dialects.includes('ganeti')) return null;
      const os = osType === null ? undefined : await osRegistry.diagnose(parseOsName(osType).name);
      const osPath = os?.definition?.path ?? null;
      return collectRunLists({ clusterDir: paths.runListsDir, osPath, own: runLists });
    },
  });
  const { bootArchives: archives } = host;
  const promisedTrees = createPromisedTrees({
    ...{ dir: paths.bootSourcesDir, archives, logger },
    isAllowed: async (url) => isAllowedRepository(url, await clusters.load()),
  });
  promisedTrees.restore();
  const bootViews = createBootViews({
    sources: { clusters: records.patient.clusters, archives },
    ...{ trees: promisedTrees, logger },
  });
  const hasChannel = (uuid: string): boolean => {
    const kept = keeper.get(uuid);
    return kept?.kind === 'run' && kept.device !== null && !kept.isOrphan;
  };
  const identities = createIdentities({
    ...{ clusters, instances, audit, clock, logger, hasChannel },
  });
  const credentials = createCloudCredentials({ identities, audit, clock, logger });
  const secrets = new RelaySecrets();
  await secrets.load(credentialsDir, logger);
  const relays = createRelays({ clusters, instances, hasChannel, secrets, clock, logger });
  const views = createViews(instances, clusters, lifecycles, bootViews, identities);
  const { patient } = records;
  const patientViews = createViews(
    patient.instances,
    patient.clusters,
    lifecycles,
    bootViews,
    identities,
  );
  const endListeners = new Set<RunEndListener>();
  const tellEnded: RunEndListener = (...ended) => {
    for (const tell of endListeners) tell(...ended);
  };
  const keeper = new MachineKeeper({
    enterShared: createEnterShared({ lease: host.lease, instances, owns: records.owns }),
    ...{ hypervisor, network, nicTaps, metad, logger, clock },
    boots: {
      settle: (uuid, isShown) => promisedTrees.settle(uuid, isShown),
      forget: (uuid) => bootViews.forget(uuid),
    },
    onReleased: (machine) => void settlePortsOf(machine, { instances, logger }),
    onExit: (uuid, kind, exit) => {
      logger.debug('machine.exit', { uuid, kind, exit: exit.reason });
      if (kind === 'run') tellEnded(uuid, exit);
    },
  });
  const services = new ExposedServices({ clusters, instances, network, keeper });
  const guestReports = createGuestReports({ instances, keeper, guestEvents, logger, clock });
  const runner = new InstanceRunner({
    ...{ instances: records.patient.instances, views: patientViews },
    ...{ keeper, metad, disks, nicTaps, guestReports, lifecycles, clock },
    chooseAccelerator: (wanted, context) => accelerators.choose(wanted, context),
  });
  const orphans = createOrphans({
    ...{ instances, keeper, views, owns: records.owns, logger, clock },
  });
  const activeInstalls = new Map<string, ActiveInstall>();

  await using undo = new AsyncDisposableStack();
  // Before the recovery it is unknown which guests use the channel.
  let isRecovered = false;
  undo.defer(() =>
    isRecovered || !metad.adopted ? stopMetad(metad, keeper, logger) : metad.detach(),
  );
  await metad.start(
    createGuestContent({
      activeInstalls,
      findService: (uuid, name) => services.find(uuid, name),
      findBootTree: (uuid) => promisedTrees.find(uuid),
      issueToken: (uuid, query, cloud) =>
        cloud === null ? identities.issue(uuid, query) : credentials.issue(uuid, cloud),
      openRelay: relays.open,
      ...{ clusters, openPackage: createOpenInstallPackage(clusters, paths.netrcFile) },
    }),
  );
  await services.openPorts();
  await identities.hasChanged();
  undo.defer(
    followCluster({ store: records.store, services, identities, relays, keeper, metad, logger }),
  );
  const interrupted = await recover({
    ...{ hypervisor, network, metad, keeper, orphans, guestReports, lifecycles, instances },
    ...{ index: records.index, logger },
    ...{ snapshots: host.snapshots, moving: host.moving, nodeName },
    ...{ disks, clock, jobs: records.jobs, outcomes: records.outcomes, owns: records.owns },
  });
  isRecovered = true;
  promisedTrees.keepOnly(keeper.list().map(({ machine }) => machine.uuid));
  // After recovery, so that repeated events of guests reach their followers.
  const eventsEnd = new AbortController();
  const following = followGuests(metad.events({ signal: eventsEnd.signal }), guestEvents, logger);
  lifecycles.hear();
  undo.defer(async () => {
    eventsEnd.abort();
    await following;
  });
  undo.use(followOrphans(orphans, records.membership, logger));
  undo.use(followHalted({ keeper, disks, logger }));
  const all = undo.move();
  return {
    ...{ metad, keeper, views: patientViews, services, runner, orphans, guestEvents, guestReports },
    lifecycles,
    relays,
    onRunEnded: (listener) => endListeners.add(listener),
    tellLost: (uuid) => tellEnded(uuid, { reason: 'crashed' }),
    activeInstalls,
    bootViews,
    interrupted,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/**
 * Looks for records of orphans, which return with an unavailable or restored store. Also looks for
 * new orphans: a record may be lost at any time, and an unreachable node may have been removed.
 */
function followOrphans(orphans: Orphans, membership: Membership, logger: Logger): Disposable {
  return every(ORPHAN_INTERVAL_MS, async () => {
    try {
      await membership.refresh();
      await orphans.noticeLost();
    } catch (error) {
      logger.debug('orphans.not-looked-for', { err: error });
    }
    await orphans.takeOverAll('debug');
  });
}

/**
 * Leaves metad running while guests use the channel, so that they keep their metadata and secrets.
 * The next noded adopts it.
 */
async function stopMetad(metad: MetadLink, keeper: MachineKeeper, logger: Logger): Promise<void> {
  const channels = keeper.list().filter((kept) => kept.device !== null).length;
  if (channels === 0) return metad.stop();
  logger.info('metad.left-running', { pid: metad.pid, channels });
  return metad.detach();
}
