import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import type { ClusterRecord, OsSettings } from '#shared/contract/api.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { osLayerNames } from '../parameters/load-parameters.ts';

/**
 * Returns the appliance that installs an instance, and the source of the choice: the instance, the
 * variant of its OS, its OS, the cluster, or by default the appliance built on this node. Pure.
 * @param layers settings of the OS, then of its variant
 */
export function chooseAppliance(
  instance: Pick<InstanceRecord, 'appliance'>,
  layers: readonly Pick<OsSettings, 'name' | 'appliance'>[],
  cluster: Pick<ClusterRecord, 'appliance'>,
): ApplianceInForce {
  const said = [
    { name: cluster.appliance, source: 'cluster' },
    ...layers.map(({ name, appliance }) => ({ name: appliance, source: `os ${name}` })),
    { name: instance.appliance ?? undefined, source: 'instance' },
  ];
  for (const { name, source } of said.reverse()) if (name !== undefined) return { name, source };
  return { name: BUILT_APPLIANCE, source: 'default' };
}

export async function loadAppliance(
  instance: Pick<InstanceRecord, 'osType' | 'appliance'>,
  clusters: Pick<ClusterRepository, 'load' | 'loadOs'>,
): Promise<ApplianceInForce> {
  const [cluster, ...layers] = await Promise.all([
    clusters.load(),
    ...osLayerNames(instance.osType).map((name) => clusters.loadOs(name)),
  ]);
  return chooseAppliance(instance, layers, cluster);
}
