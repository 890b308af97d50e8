import { createHash } from 'node:crypto';

/*
 * Names of a NAT network's devices on its host. They begin with a tag of this node, so that one
 * rule matches all of them and two nodes on a host do not collide. The kernel limits a device name
 * to 15 characters.
 */
const TAG_LENGTH = 4;
const BRIDGE_LENGTH = 8;
const TAP_LENGTH = 9;
const NAT_BRIDGE = new RegExp(`^gb[0-9a-f]{${TAG_LENGTH + BRIDGE_LENGTH}}$`);

export interface NatNames {
  /** nft tables of the families inet, bridge and arp. */
  readonly table: string;
  /** Prefix of this node's bridges and of no other device. */
  readonly bridgePrefix: string;
  /** Prefix of this node's TAPs and of no other device. */
  readonly tapPrefix: string;
  /** Prefix of the alternative names of lent devices. */
  readonly lentPrefix: string;
}

/** @param root of the node's files */
export function natNamesOf(root: string): NatNames {
  const tag = hash(root, TAG_LENGTH);
  return {
    table: `gnt-nat-${tag}`,
    bridgePrefix: `gb${tag}`,
    tapPrefix: `gn${tag}`,
    lentPrefix: `gnt-fwd-${tag}-`,
  };
}

export function bridgeOf({ bridgePrefix }: NatNames, network: { readonly uuid: string }): string {
  return bridgePrefix + hash(network.uuid, BRIDGE_LENGTH);
}

/** Returns whether a device has the name of a NAT bridge, of this or another node on this host. */
export function isNatBridge(device: string): boolean {
  return NAT_BRIDGE.test(device);
}

/**
 * Returns the name of a NIC's TAP. A node chooses the UUID, so that no user can choose a MAC or
 * another value that leads to the TAP of a neighbour.
 */
export function tapOf({ tapPrefix }: NatNames, nicUuid: string): string {
  return tapPrefix + hash(nicUuid, TAP_LENGTH);
}

/** Returns the name that releases up to 0.1 gave to the TAP of a NIC with this MAC. */
export function formerTapOf({ tapPrefix }: NatNames, mac: string): string {
  return tapPrefix + hash(mac, TAP_LENGTH);
}

/** Returns the MAC of a bridge: unique to this host, and constant when the bridge is made again. */
export function bridgeMacOf(bridge: string, root: string): string {
  return `02:${hash(`${root} ${bridge}`, 10).replaceAll(/(..)(?=.)/g, '$1:')}`;
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}
