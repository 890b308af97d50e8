import { type ReachPolicy, reachPolicyOf } from '#shared/contract/guest-reach.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { type DownloadLimits, downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { Logger } from '#shared/log/log.ts';
import type { LaunchProgram } from '#shared/process/launch.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import {
  createApplianceFiles,
  type ApplianceFiles,
} from '../provision/appliance/appliance-files.ts';
import { createExportStore, type ExportStore } from '../instances/backup/export-store.ts';
import { openBootArchives, type BootArchives } from '../netboot/archives.ts';
import { listPromisedContents } from '../netboot/promised-trees.ts';
import { bringBack } from '../cluster/migration/settle-moves.ts';
import type { NodedConfig } from './config.ts';
import { createInstanceDisks } from '../storage/create-instance-disks.ts';
import type { InstanceDisks } from '../storage/instance-disks.ts';
import { createMovingDisks, type MovingDisks } from '../storage/moving-disks.ts';
import { createSharedFolder, type SharedFolder } from '../storage/shared-folder.ts';
import { createLvm } from '../storage/drivers/lvm/lvm.ts';
import { createZfs } from '../storage/drivers/zfs/zfs.ts';
import type { VolumeSystem } from '../storage/drivers/volumes/volume-system.ts';
import type { SnapshotDisks } from '../storage/snapshot-disks.ts';
import { createAcceleratorChooser, type AcceleratorChooser } from '../vmm/accelerator-chooser.ts';
import { listNicsOfMachines } from '../instances/machines/nics-of-machines.ts';
import { createHypervisor, type Hypervisor } from '../vmm/hypervisor.ts';
import { lonelyLease, type OwnLease, startOwnLease } from '../storage/fencing/node-lease.ts';
import { createFetchSmall } from '../content/catalogue/fetch-small.ts';
import { listPathsInUse } from '../content/catalogue/paths-in-use.ts';
import { createImageCatalogue, type ImageCatalogue } from '../content/catalogue/image-catalogue.ts';
import { ImageCache } from '../content/images/image-cache.ts';
import { ImageLender } from '../content/images/lend-image.ts';
import type { Neighbours } from '../content/images/neighbours.ts';
import { createNeighbourImages } from '../cluster/images/neighbour-images.ts';
import { createChannelNetwork, type ChannelNetwork } from '../net/channel/channel-network.ts';
import { createUserNicFirewall } from '../net/channel/user-nic-firewall.ts';
import { createNicTaps, type NicTaps } from '../net/tenant/nic-taps.ts';
import { listMembers } from '../records/list-members.ts';
import { NatNetworks } from '../net/tenant/nat-networks.ts';
import { NETWORKS } from '../records/network-repository.ts';
import { programCommand } from './program-command.ts';
import type { NodeRecords } from './start-records.ts';

export interface NodeHost extends AsyncDisposable {
  readonly lease: OwnLease;
  readonly network: ChannelNetwork;
  readonly nat: NatNetworks;
  readonly nicTaps: NicTaps;
  readonly hypervisor: Hypervisor;
  readonly accelerators: AcceleratorChooser;
  readonly disks: InstanceDisks;
  readonly lvm: VolumeSystem;
  readonly zfs: VolumeSystem;
  readonly shared: SharedFolder;
  readonly snapshots: SnapshotDisks;
  readonly moving: MovingDisks;
  readonly images: ImageCache;
  readonly imageLender: ImageLender;
  readonly catalogue: ImageCatalogue;
  readonly exports: ExportStore;
  readonly bootArchives: BootArchives;
  readonly applianceFiles: ApplianceFiles;
}

export interface HostParts {
  readonly config: NodedConfig;
  readonly records: Pick<
    NodeRecords,
    'store' | 'clusters' | 'instances' | 'index' | 'jobs' | 'nodes' | 'owns' | 'common' | 'peers'
  >;
  /** Starts helper programs that write files of the node. */
  readonly launch: LaunchProgram;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: NodeJS.ProcessEnv;
}

export async function startHost(parts: HostParts): Promise<NodeHost> {
  const { config, records, launch, clock, logger, environment } = parts;
  const { paths, imageCacheBytes, machineUsers, userNicsReachHost } = config;
  await using undo = new AsyncDisposableStack();
  const network = createChannelNetwork({ namespace: paths.networkNamespace, logger });
  undo.defer(() => network.close());
  undo.defer(async () => {
    await network.removeNamespace(); // stays as long as it contains a TAP
  });
  await network.ensureNamespace();
  const readPolicy = async (): Promise<ReachPolicy> => reachPolicyOf(await records.clusters.load());
  const nat = new NatNetworks({
    ...{ nodeName: config.nodeName, root: paths.root, dir: paths.networksDir },
    ...{ users: machineUsers, logger, clock, listNetworks: () => records.clusters.listNetworks() },
    listMembers: () => listMembers(records),
    listNics: () => listNicsOfMachines(paths.vmDir, records.instances),
    readPolicy,
  });
  undo.use(nat);
  // Running guests of an earlier daemon use their networks meanwhile.
  await nat.follow();
  const watch = records.store.watch(NETWORKS, () => void nat.follow());
  undo.defer(() => watch.end());
  const limits = async (): Promise<DownloadLimits> =>
    downloadLimitsOf(await records.clusters.load());
  const images = new ImageCache({
    dir: paths.imageCacheDir,
    maxBytes: imageCacheBytes,
    limits,
    netrcFile: paths.netrcFile,
    logger,
    clock,
    neighbours: neighboursOf(parts),
  });
  undo.defer(() => images.close());
  const catalogue = createImageCatalogue({
    ...{ file: paths.cataloguesFile, importedDir: paths.importedImagesDir, images, clock },
    listPathsInUse: () => listPathsInUse(records),
    fetchSmall: createFetchSmall({ limits, netrcFile: paths.netrcFile }),
    gpgv: { users: machineUsers, dir: paths.runDir },
    machine: 'amd64',
  });
  await catalogue.settle().catch((error: unknown) => {
    logger.error('catalogue.not-settled', { err: error });
  });
  const exports = createExportStore(paths.exportDir);
  await exports.sweep();
  const bootArchives = await openBootArchives(paths.bootArchivesDir, () =>
    listPromisedContents(paths.bootSourcesDir),
  );
  const wall = createUserNicFirewall({
    table: paths.machineWallTable,
    users: machineUsers,
    isOpen: userNicsReachHost,
    readPolicy,
    logger,
  });
  undo.use(wall);
  const hypervisor = createHypervisor({
    ...{ vmDir: paths.vmDir, users: machineUsers, wall, logger, clock },
    leaseFile: records.common === null ? null : paths.leaseFile,
  });
  // A repeated start adopts the QEMU processes again.
  undo.defer(() => hypervisor.letGo());
  const [command, ...args] = programCommand('appliance');
  const applianceFiles = createApplianceFiles({
    dir: paths.applianceDir,
    importedDir: paths.importedAppliancesDir,
    builder: { command, args },
    launch,
    builderEnvironment: {
      PATH: SYSTEM_PATH,
      HOME: environment['HOME'] ?? '/root',
      GNT_ROOT: paths.root,
      ...(environment['GNT_CACHE'] !== undefined && { GNT_CACHE: environment['GNT_CACHE'] }),
    },
  });
  const shared = createSharedFolder(() => records.clusters.load());
  const [lvm, zfs] = [createLvm(), createZfs()];
  const here = { nodeName: config.nodeName, owns: records.owns };
  const disks = createInstanceDisks(paths.disksDir, {
    bringBack: (uuid) => bringBack(uuid, { nodeName: config.nodeName, ...records, moving, logger }),
    shared,
    plain: { system: lvm, ...here, loadPlace: async () => (await records.clusters.load()).vgName },
    zfs: { system: zfs, ...here, loadPlace: async () => (await records.clusters.load()).zfsPool },
  });
  const moving = createMovingDisks(paths.disksDir, disks);
  const lease = undo.use(
    records.common === null
      ? lonelyLease
      : await startOwnLease({
          ...{ store: records.store, nodeName: config.nodeName, file: paths.leaseFile, logger },
          ttlMs: config.sharedLeaseMs,
          replicas: records.common.server.replicas,
          isNeeded: async () => (await records.clusters.load()).sharedFileStorageDir !== undefined,
          giveUp: async (uuid) => {
            await hypervisor.cut(uuid);
            await disks.detach(uuid);
          },
        }),
  );
  const all = undo.move();
  return {
    lease,
    network,
    nat,
    nicTaps: createNicTaps({
      nodeName: config.nodeName,
      loadNetwork: (name) => records.clusters.loadNetwork(name),
      nat,
    }),
    hypervisor,
    accelerators: createAcceleratorChooser(() => hypervisor.probeAccelerator()),
    disks,
    ...{ lvm, zfs },
    shared,
    snapshots: disks.snapshots,
    moving,
    images,
    imageLender: new ImageLender(images),
    catalogue,
    exports,
    bootArchives,
    applianceFiles,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Returns undefined on a single-node cluster. */
function neighboursOf({ config, records, logger }: HostParts): Neighbours | undefined {
  const { nodes, peers } = records;
  if (peers === null) return undefined;
  return createNeighbourImages({ nodeName: config.nodeName, nodes, peers, logger });
}
