import { z } from 'zod';

/**
 * Addresses that a guest reaches through the node: all, or public ones and the cluster's guest
 * networks.
 */
export const nicReach = z.enum(['all', 'public']);
export type NicReach = z.infer<typeof nicReach>;

export const MAX_GUEST_NETWORKS = 64;
/** A private address or network that NICs with `reach=public` reach. */
export const guestNetwork = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
  'expected an address or a network such as 10.1.0.0/16',
);

/** The cluster's policy for private networks around its nodes. */
export interface ReachPolicy {
  /** Every NIC has `reach=public`. */
  readonly confinesAll: boolean;
  readonly networks: readonly string[];
}

/** Returns the policy of a cluster's record. */
export function reachPolicyOf({
  confineGuests = false,
  guestNetworks = [],
}: {
  readonly confineGuests?: boolean | undefined;
  readonly guestNetworks?: readonly string[] | undefined;
}): ReachPolicy {
  return { confinesAll: confineGuests, networks: guestNetworks };
}
