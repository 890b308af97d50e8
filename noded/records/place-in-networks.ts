import type { InstanceNic, InstanceRecord } from '#shared/contract/instance.ts';
import { networkRecord, type NetworkRecord } from '#shared/contract/network.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import { placeNics } from './place-nics.ts';
import { networksOf } from './named-records.ts';
import { NETWORK_IPS, NETWORKS } from './network-repository.ts';

/**
 * Returns the NICs with addresses of their networks, by the present state of the store. The next
 * commit checks that neither has changed: it claims the addresses and writes the networks again
 * (`planNamed`).
 * @throws AppError NOT_FOUND, CONFLICT, VALIDATION, NO_FREE_ADDRESS
 */
export async function placeInNetworks(
  store: Pick<Store, 'get' | 'ids'>,
  { nics, primaryNode: node }: Pick<InstanceRecord, 'nics' | 'primaryNode'>,
  former: readonly InstanceNic[],
): Promise<InstanceNic[]> {
  const names = networksOf(nics);
  if (names.size === 0) return nics;
  const networks = new Map<string, NetworkRecord>();
  for (const name of names) {
    const stored = await store.get(NETWORKS, name);
    if (stored !== undefined) networks.set(name, parseRecord(networkRecord, NETWORKS, stored));
  }
  const taken = new Map<string, Set<string>>();
  for (const id of await store.ids(NETWORK_IPS)) {
    const [name = '', ip = ''] = id.split('/');
    if (names.has(name)) taken.getOrInsert(name, new Set()).add(ip);
  }
  return placeNics(nics, { node, networks, taken, former });
}
