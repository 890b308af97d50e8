import type { DoctorFinding } from '#shared/contract/api.ts';
import type { ClusterRecord } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import type { RecordProblems } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import type { ClusterKey } from '../../cluster/membership/start-cluster-key.ts';
import type { NodeLinks } from '../../cluster/peers/node-links.ts';
import type { Membership } from '../../cluster/membership/membership.ts';
import type { MachineUsers } from '../../host/machine-users.ts';
import type { BootViews } from '../../instances/view/boot-views.ts';
import type { MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { Orphans } from '../../instances/machines/orphans.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';
import type { Relays } from '../../net/relay/relays.ts';
import type { NatNetworks } from '../../net/tenant/nat-networks.ts';
import type { ApplianceFiles } from '../../provision/appliance/appliance-files.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { readIndexed } from '../../records/read-indexed.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { MovingDisks } from '../../storage/moving-disks.ts';
import type { SharedFolder } from '../../storage/shared-folder.ts';
import type { SnapshotDisks } from '../../storage/snapshot-disks.ts';
import type { AcceleratorChooser } from '../../vmm/accelerator-chooser.ts';
import type { AskedVolumes } from '../operation-dependencies.ts';

/** Components of the node that checks examine, grouped as the wiring makes them. */
export interface NodeParts {
  readonly config: {
    readonly nodeName: string;
    readonly paths: RootPaths;
    readonly machineUsers: MachineUsers;
    readonly userNicsReachHost: boolean;
    readonly rapi: { readonly certificateFile: string } | null;
    readonly web: { readonly certificateFile: string } | null;
    readonly identity: { readonly certificateFile: string } | null;
  };
  readonly records: {
    readonly store: Pick<Store, 'ids' | 'risks'>;
    readonly storeDescription: string;
    readonly problems: Pick<RecordProblems, 'list'>;
    readonly clusters: Pick<
      ClusterRepository,
      'load' | 'listNetworks' | 'listOs' | 'loadIdentityKeys'
    >;
    readonly instances: Pick<InstanceRepository, 'findByUuid' | 'readSome'>;
    readonly index: Pick<InstanceIndex, 'list' | 'doubt'>;
    readonly nodes: Pick<NodeRegistry, 'flagsOf' | 'list'>;
    readonly peers: Pick<NodeLinks, 'describe' | 'probe'> | null;
    readonly membership: Pick<Membership, 'removedAtMs'>;
    readonly owns: (node: string) => boolean;
  };
  readonly host: {
    readonly disks: InstanceDisks;
    readonly moving: Pick<MovingDisks, 'listLeaving' | 'isArriving'>;
    readonly snapshots: Pick<SnapshotDisks, 'listForgotten'>;
    readonly shared: Pick<SharedFolder, 'require'>;
    readonly lvm: AskedVolumes;
    readonly zfs: AskedVolumes;
    readonly nat: Pick<NatNetworks, 'report'>;
    readonly accelerators: Pick<AcceleratorChooser, 'probe'>;
    readonly applianceFiles: Pick<ApplianceFiles, 'verify'>;
  };
  readonly guests: {
    readonly keeper: Pick<MachineKeeper, 'list'>;
    readonly bootViews: Pick<BootViews, 'state'>;
    readonly metad: Pick<MetadLink, 'pid' | 'restarts'>;
    readonly relays: Pick<Relays, 'listMissing'>;
    readonly orphans: Pick<Orphans, 'list'>;
  };
  readonly clusterKey: Pick<ClusterKey, 'describe'>;
}

type Findings = DoctorFinding | readonly DoctorFinding[];

/** Examines one concern of the node. A finding that needs an action has a hint. */
export type Check = (parts: NodeParts) => Findings | Promise<Findings>;

export function ok(check: string, message: string): DoctorFinding {
  return { check, level: 'ok', message, hint: null };
}

export function warning(check: string, message: string, hint: string | null): DoctorFinding {
  return { check, level: 'warning', message, hint };
}

export function failure(check: string, message: string, hint: string | null): DoctorFinding {
  return { check, level: 'error', message, hint };
}

/** Returns the instances of this node. @throws AppError STORE_UNAVAILABLE */
export async function listOwn({ records }: NodeParts): Promise<readonly InstanceRecord[]> {
  const isOwn = ({ primaryNode }: { readonly primaryNode: string }): boolean =>
    records.owns(primaryNode);
  return (await Array.fromAsync(readIndexed(records, isOwn))).flat();
}

/**
 * Returns the cluster's record, or undefined: a missing record is a finding of its own and must not
 * hide others.
 */
export async function loadCluster({
  records,
}: Pick<NodeParts, 'records'>): Promise<ClusterRecord | undefined> {
  return records.clusters.load().catch((error: unknown) => {
    if (isAppError(error)) return undefined;
    throw error;
  });
}
