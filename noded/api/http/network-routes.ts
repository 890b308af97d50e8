import { type NetworkInfo, networkInfo, type NetworkRecord } from '#shared/contract/network.ts';
import { compareAddresses, countFree, sizeOf } from '../../records/address-pool.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { TakenAddress } from '../../records/network-repository.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface NetworkRoutesDependencies {
  readonly clusters: Pick<ClusterRepository, 'listNetworks' | 'listTakenAddresses'>;
  readonly index: Pick<InstanceIndex, 'list'>;
}

export function networkRoutes(dependencies: NetworkRoutesDependencies): readonly AnyApiRoute[] {
  return [
    question('/v1/networks', 'Lists the networks with their addresses', networkInfo.array(), () =>
      listNetworkInfos(dependencies),
    ),
  ];
}

export async function listNetworkInfos({
  clusters,
  index,
}: NetworkRoutesDependencies): Promise<NetworkInfo[]> {
  const [networks, taken, instances] = await Promise.all([
    clusters.listNetworks(),
    clusters.listTakenAddresses(),
    index.list(),
  ]);
  const names = new Map(instances.map(({ uuid, name }) => [uuid, name] as const));
  return networks.map((network) => describeNetwork(network, taken, names));
}

function describeNetwork(
  { schema, ...network }: NetworkRecord,
  taken: readonly TakenAddress[],
  names: ReadonlyMap<string, string>,
): NetworkInfo {
  void schema;
  const own = taken.filter((one) => one.network === network.name);
  return {
    ...network,
    size: sizeOf(network),
    free: countFree(network, new Set(own.map(({ ip }) => ip))),
    addresses: own
      .map(({ ip, uuid }) => ({ ip, instance: names.get(uuid) ?? uuid }))
      .sort((one, other) => compareAddresses(one.ip, other.ip)),
  };
}
