import { DEFAULT_LINK } from '#shared/contract/machine-parameters.ts';
import type { InstanceNic } from '#shared/contract/instance.ts';
import type { NetworkConnection, NetworkRecord } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { assertBridge, openBridgedTap } from '../channel/bridged-tap.ts';
import type { ChannelTap } from '../channel/channel-network.ts';
import type { GuestNic } from './nat-guests.ts';
import { isNatBridge } from './nat-names.ts';
import { requireConnected } from '../../records/place-nics.ts';

export interface NicTapsOptions {
  readonly nodeName: string;
  readonly loadNetwork: (name: string) => Promise<NetworkRecord>;
  readonly nat: NatTaps;
}

/** Networks with a bridge of this node. */
export interface NatTaps {
  /** Opens the TAP of a guest after its bridge, rules and dnsmasq are ready. */
  openNatTap(network: NetworkRecord, guest: GuestNic): Promise<ChannelTap>;
  tidy(): Promise<void>;
  /** @throws the failure of the last look at the network */
  requireSound(network: string): void;
}

/** Opens NICs with a TAP on a bridge. */
export function createNicTaps(options: NicTapsOptions) {
  const { nodeName, loadNetwork, nat } = options;
  const find = async (
    name: string,
  ): Promise<{ readonly network: NetworkRecord; readonly connection: NetworkConnection }> => {
    const network = requireConnected(name, await loadNetwork(name), nodeName);
    const connection = ownValue(network.connections, nodeName);
    if (connection === undefined) throw new Error('it was required');
    return { network, connection };
  };
  return {
    /** Checks everything that can be refused before the NIC is opened. @throws AppError */
    check: async ({ mode, link, networkName }: InstanceNic): Promise<void> => {
      if (mode !== 'bridged') return;
      if (networkName === undefined) return requireLink(link ?? DEFAULT_LINK);
      const { connection } = await find(networkName);
      if (connection.mode === 'bridged') requireLink(connection.link);
      else nat.requireSound(networkName);
    },
    /** @throws AppError HOST_PREREQUISITE, NETWORK_SETUP, NOT_FOUND, CONFLICT */
    open: async (
      { uuid, mac, ip, link, networkName, reach }: InstanceNic,
      name: string,
    ): Promise<ChannelTap> => {
      if (networkName === undefined) return openLinked(link ?? DEFAULT_LINK);
      const { network, connection } = await find(networkName);
      if (connection.mode === 'bridged') return openLinked(connection.link);
      if (ip === null) throw new Error(`a NIC of ${name} has no address`);
      return nat.openNatTap(network, { uuid, mac, ip, name, network: networkName, reach });
    },
    /** Forgets NICs whose TAPs disappeared. Never rejects. */
    tidy: (): Promise<void> => nat.tidy(),
  };
}

export type NicTaps = ReturnType<typeof createNicTaps>;

/**
 * Refuses a link that is no bridge or belongs to a NAT network. Such a bridge is reserved for NICs
 * of its network, because another port would have no rules and its guest could impersonate every
 * neighbour.
 * @throws AppError HOST_PREREQUISITE, CONFLICT
 */
export function requireLink(link: string): void {
  if (isNatBridge(link)) {
    throw new AppError('CONFLICT', `${link} is the bridge of a NAT network`, {
      details: { link },
      hint: 'Use network=NAME to connect a NIC to it. List the names: gnt-network list',
    });
  }
  assertBridge(link);
}

async function openLinked(link: string): Promise<ChannelTap> {
  requireLink(link);
  return openBridgedTap({ link });
}
