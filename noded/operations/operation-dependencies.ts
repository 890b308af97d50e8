import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import type { ApplianceFiles } from '../provision/appliance/appliance-files.ts';
import type { ExportStore } from '../instances/backup/export-store.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { InstanceDisks } from '../storage/instance-disks.ts';
import type { MovingDisks } from '../storage/moving-disks.ts';
import type { SnapshotDisks } from '../storage/snapshot-disks.ts';
import type { VolumeSystem } from '../storage/drivers/volumes/volume-system.ts';
import type { PlaceSpace } from '../host/file-systems.ts';
import type { ImageCache } from '../content/images/image-cache.ts';
import type { Installer } from '../provision/install/installer.ts';
import type { ExposedServices } from '../instances/machines/exposed-services.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { NicTaps } from '../net/tenant/nic-taps.ts';
import type { NatNetworks } from '../net/tenant/nat-networks.ts';
import type { Outcomes } from '../records/outcomes.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import type { GuestReports } from '../instances/reports/guest-reports.ts';
import type { BootArchives } from '../netboot/archives.ts';
import type { BootViews } from '../instances/view/boot-views.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import type { MachineKeeper } from '../instances/machines/machine-keeper.ts';
import type { MetadCalls } from '../net/metad-link/metad-client.ts';
import type { Lifecycles } from '../instances/run-lists/lifecycles-contract.ts';
import type { DiskPromise } from '../instances/record/promised-space.ts';
import type { Orphans } from '../instances/machines/orphans.ts';
import type { Membership } from '../cluster/membership/membership.ts';
import type { ForeignLeases } from '../storage/fencing/foreign-leases.ts';
import type { FindElsewhere } from '../cluster/placement/find-elsewhere.ts';
import type { MigrateDependencies } from '../cluster/migration/migrate-instance.ts';
import type { Presence } from '../cluster/peers/ask-peer.ts';
import type { HookChecker } from '../provision/os/check-hooks.ts';
import type { HostCopies } from '../provision/os/host-copies.ts';
import type { OsRegistry } from '../provision/os/os-registry.ts';
import type { Peers } from '../cluster/peers/ask-peer.ts';

/** The questions about a place for new volumes before the cluster uses it. */
export type AskedVolumes = Pick<
  VolumeSystem,
  'listGroups' | 'listVolumes' | 'isScanned' | 'parsePlace' | 'errors'
>;

export interface OperationDependencies {
  readonly nodeName: string;
  readonly membership: Pick<Membership, 'requireMember'>;
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string) => boolean;
  readonly clusters: ClusterRepository;
  readonly nodes: Pick<NodeRegistry, 'flagsOf' | 'changeFlags' | 'names'>;
  /** Returns whether another node runs, marked offline or not. */
  readonly presenceOf: (node: string) => Promise<Presence>;
  readonly instances: InstanceRepository;
  readonly outcomes: Pick<Outcomes, 'noteRemoval' | 'endRemoval' | 'removalOf'>;
  readonly disks: InstanceDisks;
  readonly lvm: AskedVolumes;
  readonly zfs: AskedVolumes;
  readonly snapshots: SnapshotDisks;
  readonly moving: MovingDisks;
  readonly leases: ForeignLeases;
  readonly nicTaps: NicTaps;
  readonly nat: Pick<NatNetworks, 'check' | 'settle' | 'follow'>;
  /** Null on a single-node cluster. */
  readonly peers: Peers | null;
  readonly images: ImageCache;
  readonly applianceFiles: Pick<ApplianceFiles, 'verify'>;
  readonly osRegistry: OsRegistry;
  readonly hostCopies: HostCopies;
  readonly findElsewhere: FindElsewhere;
  readonly installer: Installer;
  readonly runner: InstanceRunner;
  readonly keeper: Pick<MachineKeeper, 'get' | 'become' | 'kill'>;
  readonly metad: Pick<MetadCalls, 'secrets' | 'leave' | 'stay'>;
  readonly listConnections: MigrateDependencies['listConnections'];
  readonly archives: BootArchives;
  readonly bootViews: Pick<BootViews, 'check' | 'state'>;
  readonly orphans: Orphans;
  readonly guestReports: GuestReports;
  readonly lifecycles: Lifecycles;
  readonly services: ExposedServices;
  readonly exports: ExportStore;
  readonly measurePlaces: () => Promise<readonly PlaceSpace[]>;
  /** Returns the size to which the sparse disks of this node may grow. */
  readonly promiseOfDisks: () => Promise<DiskPromise>;
  readonly logDir: string;
  readonly hookChecker: HookChecker;
  readonly logger: Logger;
  readonly clock: Clock;
}
