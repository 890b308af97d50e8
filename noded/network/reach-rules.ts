import { isIPv6 } from 'node:net';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { guestNetwork } from '#shared/contract/guest-reach.ts';
import { PRIVATE_NETWORKS } from '../host/private-networks.ts';

const REJECT = 'reject with icmpx type admin-prohibited';

/**
 * Plans a chain that rejects packets to private networks, except to those that the operator named.
 * All other packets return. Pure.
 * @param table with its family, as in `inet gnt`
 */
export function planPrivateChain(table: string, { networks }: ReachPolicy): readonly string[] {
  const rule = `add rule ${table} private`;
  return [
    `add chain ${table} private`,
    ...networks.map((network) => {
      if (!guestNetwork.safeParse(network).success)
        throw new Error(`not fit for a rule: ${JSON.stringify(network)}`);
      return `${rule} ${familyOf(network)} daddr ${network} return`;
    }),
    ...(['ip', 'ip6'] as const).map((family) => {
      const closed = PRIVATE_NETWORKS.filter((network) => familyOf(network) === family);
      return `${rule} ${family} daddr { ${closed.join(', ')} } ${REJECT}`;
    }),
  ];
}

function familyOf(network: string): 'ip' | 'ip6' {
  return isIPv6(network.split('/', 1)[0] ?? '') ? 'ip6' : 'ip';
}
