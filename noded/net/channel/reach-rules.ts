import { isIPv6 } from 'node:net';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { guestNetwork } from '#shared/contract/guest-reach.ts';
import { PRIVATE_NETWORKS } from '../../host/private-networks.ts';
import { translatedNetworks } from '../../host/translated-networks.ts';

const REJECT = 'reject with icmpx type admin-prohibited';

/**
 * Plans a chain that rejects packets to private networks, except to the networks of the policy. All
 * other packets return.
 * @param table with its family, as in `inet gnt`
 */
export function planPrivateChain(table: string, { networks }: ReachPolicy): readonly string[] {
  const rule = `add rule ${table} private`;
  const unfit = networks.find((network) => !guestNetwork.safeParse(network).success);
  if (unfit !== undefined) throw new Error(`not fit for a rule: ${JSON.stringify(unfit)}`);
  return [
    `add chain ${table} private`,
    ...withTranslated(networks).map(
      (network) => `${rule} ${familyOf(network)} daddr ${network} return`,
    ),
    ...(['ip', 'ip6'] as const).map((family) => {
      const closed = withTranslated(PRIVATE_NETWORKS).filter((one) => familyOf(one) === family);
      return `${rule} ${family} daddr { ${closed.join(', ')} } ${REJECT}`;
    }),
  ];
}

function withTranslated(networks: readonly string[]): readonly string[] {
  return [...networks, ...translatedNetworks(networks)];
}

function familyOf(network: string): 'ip' | 'ip6' {
  return isIPv6(network.split('/', 1)[0] ?? '') ? 'ip6' : 'ip';
}
