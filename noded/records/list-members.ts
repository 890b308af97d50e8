import type { ClusterRepository } from './cluster-repository.ts';
import type { InstanceIndex } from './instance-index.ts';

/**
 * Lists the names of instances with an address in a network, by the network's name.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function listMembers({
  clusters,
  index,
}: {
  readonly clusters: Pick<ClusterRepository, 'listTakenAddresses'>;
  readonly index: Pick<InstanceIndex, 'list'>;
}): Promise<ReadonlyMap<string, readonly string[]>> {
  const [taken, instances] = await Promise.all([clusters.listTakenAddresses(), index.list()]);
  const names = new Map(instances.map(({ uuid, name }) => [uuid, name] as const));
  const members = new Map<string, string[]>();
  for (const { network, uuid } of taken) {
    const name = names.get(uuid);
    if (name !== undefined) members.getOrInsert(network, []).push(name);
  }
  return members;
}
