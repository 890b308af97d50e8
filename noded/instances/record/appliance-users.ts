import type { ApplianceUsers } from '#shared/contract/appliance-choice.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';

export interface ApplianceUsersSources {
  readonly clusters: Pick<ClusterRepository, 'load' | 'listOs'>;
  readonly instances: Pick<InstanceRepository, 'list'>;
}

/** Returns each appliance in use with its users. The cluster's choice comes first. */
export async function listNamedAppliances({
  clusters,
  instances,
}: ApplianceUsersSources): Promise<ReadonlyMap<string, ApplianceUsers>> {
  const named = new Map<string, ApplianceUsers>();
  const usersOf = (name: string): ApplianceUsers => {
    const users = named.get(name) ?? { cluster: false, operatingSystems: [], instances: [] };
    named.set(name, users);
    return users;
  };
  usersOf((await clusters.load()).appliance ?? BUILT_APPLIANCE).cluster = true;
  for (const { name, appliance } of await clusters.listOs())
    if (appliance !== undefined) usersOf(appliance).operatingSystems.push(name);
  for (const { name, appliance } of await instances.list())
    if (appliance !== null) usersOf(appliance).instances.push(name);
  return named;
}
