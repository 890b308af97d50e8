import type { InstanceNic } from '#shared/contract/instance.ts';
import { ANY_ADDRESS, type NetworkRecord } from '#shared/contract/network.ts';
import { nicNetwork, type NicNetwork } from '#shared/contract/static-network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { firstFree, requireUsable } from './address-pool.ts';

export interface Placement {
  readonly node: string;
  readonly networks: ReadonlyMap<string, NetworkRecord>;
  /** Addresses of other instances, by network. */
  readonly taken: ReadonlyMap<string, ReadonlySet<string>>;
  /** Present NICs of the instance. Those with the same UUID keep their addresses. */
  readonly former: readonly InstanceNic[];
}

/**
 * Returns the NICs with an address in each of their networks. On a bridge without DHCP, each also
 * gets the static configuration for its guest. Pure.
 * @throws AppError NOT_FOUND, CONFLICT, VALIDATION, NO_FREE_ADDRESS
 */
export function placeNics(nics: readonly InstanceNic[], placement: Placement): InstanceNic[] {
  const chosen = new Map<string, Set<string>>();
  for (const { networkName, ip } of nics) {
    if (networkName === undefined || ip === null || ip === ANY_ADDRESS) continue;
    const own = chosen.getOrInsert(networkName, new Set());
    if (own.has(ip))
      throw new AppError('VALIDATION', `${ip} of network '${networkName}' is given twice`);
    own.add(ip);
  }
  return nics.map((nic) => {
    const { networkName: name } = nic;
    if (name === undefined || isKept(nic, placement.former)) return nic;
    const network = requireConnected(name, placement.networks.get(name), placement.node);
    const own = chosen.getOrInsert(name, new Set());
    const ip =
      nic.ip === null || nic.ip === ANY_ADDRESS
        ? takeFree(network, own, placement.taken.get(name))
        : nic.ip;
    requireUsable(network, ip);
    own.add(ip);
    return { ...nic, ip, network: planStatic(network, placement.node, ip) };
  });
}

/** @throws AppError NOT_FOUND, CONFLICT */
export function requireConnected(
  name: string,
  network: NetworkRecord | undefined,
  node: string,
): NetworkRecord {
  if (network === undefined) {
    throw new AppError('NOT_FOUND', `there is no network '${name}'`, {
      details: { name },
      hint: 'List the networks: gnt-network list',
    });
  }
  if (ownValue(network.connections, node) !== undefined) return network;
  throw new AppError('CONFLICT', `network '${name}' is not connected on node ${node}`, {
    details: { name, node },
    hint: `Connect it: gnt-network connect ${name} ${node} bridged LINK, or nat instead of bridged LINK`,
  });
}

function isKept(nic: InstanceNic, former: readonly InstanceNic[]): boolean {
  return former.some(
    ({ uuid, networkName, ip }) =>
      uuid === nic.uuid && networkName === nic.networkName && ip === nic.ip,
  );
}

function takeFree(
  network: NetworkRecord,
  own: ReadonlySet<string>,
  taken: ReadonlySet<string> = new Set(),
): string {
  const free = firstFree(network, own.union(taken));
  if (free !== undefined) return free;
  throw new AppError('NO_FREE_ADDRESS', `network '${network.name}' has no free address`, {
    details: { network: network.name },
    hint: 'Remove instances that are not needed, or create a larger network.',
  });
}

/** Returns the static configuration of the guest; null behind NAT, where it uses DHCP. */
function planStatic(
  { connections, network, gateway }: NetworkRecord,
  node: string,
  ip: string,
): NicNetwork | null {
  if (ownValue(connections, node)?.mode === 'nat') return null;
  return nicNetwork.parse({
    addresses: [`${ip}/${network.split('/')[1] ?? ''}`],
    gateways: gateway === null ? [] : [gateway],
  });
}
