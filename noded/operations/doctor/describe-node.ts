import type { NodeInfo } from '#shared/contract/api.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { measureRoom } from '../../host/measure-room.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { ApplianceFiles } from '../../provision/appliance/appliance-files.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { Membership } from '../../cluster/membership/membership.ts';
import type { Orphans } from '../../instances/machines/orphans.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';

export interface DescribeNodeInput {
  readonly paths: RootPaths;
  readonly nodeName: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly metad: MetadLink;
  readonly disks: InstanceDisks;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly owns: (node: string) => boolean;
  readonly keeper: MachineKeeper;
  readonly orphans: Pick<Orphans, 'list'>;
  readonly membership: Pick<Membership, 'removedAtMs'>;
  readonly applianceFiles: Pick<ApplianceFiles, 'verify'>;
  readonly clusters: Pick<ClusterRepository, 'load'>;
  readonly nodes: Pick<NodeRegistry, 'flagsOf'>;
}

export type HostCapacity = Pick<NodeInfo, 'cpus' | 'memoryMiB' | 'memoryFreeMiB' | 'diskFreeBytes'>;

/** This node as `gnt-node info` shows it. */
export async function describeNode(input: DescribeNodeInput): Promise<NodeInfo> {
  const { paths, metad, keeper } = input;
  return {
    name: input.nodeName,
    version: input.version,
    root: paths.root,
    pid: process.pid,
    startedAtMs: input.startedAtMs,
    metad: { pid: metad.pid, restarts: metad.restarts },
    networkNamespace: paths.networkNamespace,
    ...capacityOf(await measureRoom(input.disks)),
    instances: (await input.index.list()).filter(({ primaryNode }) => input.owns(primaryNode))
      .length,
    instancesRunning: keeper.list().filter((kept) => kept.kind === 'run').length,
    removedAtMs: input.membership.removedAtMs(),
    orphans: [...input.orphans.list()],
    appliance: await describeAppliance(input),
    flags: await input.nodes.flagsOf(input.nodeName),
  };
}

function capacityOf({ cpus, memoryMiB, memoryFreeMiB, diskFreeBytes }: HostRoom): HostCapacity {
  return { cpus, memoryMiB, memoryFreeMiB, diskFreeBytes };
}

/** The one that the cluster uses. */
async function describeAppliance({
  applianceFiles,
  clusters,
}: Pick<DescribeNodeInput, 'applianceFiles' | 'clusters'>): Promise<NodeInfo['appliance']> {
  try {
    const { appliance = BUILT_APPLIANCE } = await clusters.load();
    const { manifest } = await applianceFiles.verify(appliance);
    return { state: 'intact', detail: `kernel ${manifest.kernelVersion}` };
  } catch (error) {
    return {
      state: isAppError(error, 'APPLIANCE_MISSING') ? 'missing' : 'corrupt',
      detail: messageOf(error),
    };
  }
}
