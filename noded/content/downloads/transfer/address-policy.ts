import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { METADATA_NETWORKS } from '../../../host/metadata-networks.ts';
import { PRIVATE_NETWORKS } from '../../../host/private-networks.ts';

/**
 * Distances of an address, the farthest first. Redirections may lead as far away as the first
 * server, and never nearer: a web server must not use this host to reach its private network.
 */
const DEPTHS = ['public', 'private', 'host'] as const;
export type Depth = (typeof DEPTHS)[number];

/**
 * Refused even for operators: the host's own cloud metadata service, and other link-local
 * addresses.
 */
const forbidden = listOf(...METADATA_NETWORKS);
/** `0.0.0.0` and `::` reach this host as well. */
const loopback = listOf('127.0.0.0/8', '0.0.0.0/8', '::/96');
const inner = listOf(...PRIVATE_NETWORKS);
/** RFC 6052 and RFC 2765, which some stacks still send. The last 32 bits are the IPv4 address. */
const translated = listOf('64:ff9b::/96', '::ffff:0:0:0/96');

function listOf(...subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

export function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/**
 * Returns the distance of an address; null for a forbidden one. BlockList handles IPv4-mapped
 * addresses itself.
 */
export function depthOf(address: string): Depth | null {
  const bare = untranslated(address.split('%', 1)[0] ?? '');
  const isIn = (list: BlockList): boolean => list.check(bare, familyOf(bare));
  if (isIn(forbidden)) return null;
  if (isLoopback(bare) || isOwn(bare)) return 'host';
  return isIn(inner) ? 'private' : 'public';
}

export function isLoopback(address: string): boolean {
  return loopback.check(address, familyOf(address));
}

export function isDeeper(depth: Depth, than: Depth): boolean {
  return DEPTHS.indexOf(depth) > DEPTHS.indexOf(than);
}

/** Services that listen on all addresses answer here too, possibly behind a firewall for others. */
function isOwn(address: string): boolean {
  const own = new BlockList();
  for (const { address: found } of Object.values(networkInterfaces()).flatMap((all) => all ?? []))
    own.addAddress(found.split('%', 1)[0] ?? '', familyOf(found));
  return own.check(address, familyOf(address));
}

function untranslated(address: string): string {
  if (!isIPv6(address) || !translated.check(address, 'ipv6')) return address;
  const groups = new URL(`http://[${address}]/`).hostname.slice(1, -1).split(':');
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
