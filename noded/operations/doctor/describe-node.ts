import type { NodeInfo } from '#shared/contract/api.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { measureRoom } from '../../host/measure-room.ts';
import type { NodeParts } from './check.ts';

export interface DescribeNodeInput extends Omit<NodeParts, 'clusterKey'> {
  readonly version: string;
  readonly startedAtMs: number;
}

export type HostCapacity = Pick<
  NodeInfo,
  'cpus' | 'memoryMiB' | 'memoryFreeMiB' | 'diskBytes' | 'diskFreeBytes'
>;

/** Describes this node for `gnt-node info`. */
export async function describeNode(input: DescribeNodeInput): Promise<NodeInfo> {
  const { config, records, host, guests } = input;
  const { index, membership, nodes, owns } = records;
  const { metad, keeper, orphans } = guests;
  return {
    name: config.nodeName,
    version: input.version,
    root: config.paths.root,
    pid: process.pid,
    startedAtMs: input.startedAtMs,
    metad: { pid: metad.pid, restarts: metad.restarts },
    networkNamespace: config.paths.networkNamespace,
    ...capacityOf(await measureRoom(host.disks)),
    instances: (await index.list()).filter(({ primaryNode }) => owns(primaryNode)).length,
    instancesRunning: keeper.list().filter((kept) => kept.kind === 'run').length,
    removedAtMs: membership.removedAtMs(),
    orphans: [...orphans.list()],
    appliance: await describeAppliance(input),
    dataLinks: records.peers?.describe() ?? null,
    flags: await nodes.flagsOf(config.nodeName),
  };
}

function capacityOf({
  cpus,
  memoryMiB,
  memoryFreeMiB,
  diskBytes,
  diskFreeBytes,
}: HostRoom): HostCapacity {
  return { cpus, memoryMiB, memoryFreeMiB, diskBytes, diskFreeBytes };
}

/** Describes the cluster's default appliance. */
async function describeAppliance({
  records,
  host,
}: DescribeNodeInput): Promise<NodeInfo['appliance']> {
  try {
    const { appliance = BUILT_APPLIANCE } = await records.clusters.load();
    const { manifest } = await host.applianceFiles.verify(appliance);
    return { state: 'intact', detail: `kernel ${manifest.kernelVersion}` };
  } catch (error) {
    return {
      state: isAppError(error, 'APPLIANCE_MISSING') ? 'missing' : 'corrupt',
      detail: messageOf(error),
    };
  }
}
