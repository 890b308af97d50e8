import { createHash } from 'node:crypto';

/*
 * What a NAT network is called on its host. Names begin with what is this node's alone, so that one
 * rule means all of them, and two nodes on a host do not meet. A device has 15 characters at most.
 */
const TAG_LENGTH = 4;
const BRIDGE_LENGTH = 8;
const TAP_LENGTH = 9;
const NAT_BRIDGE = new RegExp(`^gb[0-9a-f]{${TAG_LENGTH + BRIDGE_LENGTH}}$`);

export interface NatNames {
  /** nft's tables, of the families inet and bridge. */
  readonly table: string;
  /** All bridges begin with it, and nothing else does. */
  readonly bridgePrefix: string;
  /** All TAPs begin with it, and nothing else does. */
  readonly tapPrefix: string;
  /** Other names of devices that forward for this node's networks alone begin with it. */
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

/**
 * Whether a device is called as a bridge of a node of this host is, be it another node than this.
 */
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

/** The MAC of a bridge, which no other host has: the same whenever the bridge is made. */
export function bridgeMacOf(bridge: string, root: string): string {
  return `02:${hash(`${root} ${bridge}`, 10).replaceAll(/(..)(?=.)/g, '$1:')}`;
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}
