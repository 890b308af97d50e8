import { isIPv4 } from 'node:net';

/** RFC 6052, and 2765: the last 32 bits of such an address are an IPv4 address. */
const PREFIXES = ['64:ff9b::', '::ffff:0:'] as const;
const PREFIX_BITS = 96;

/** Returns the IPv6 networks that a translator (NAT64) maps to IPv4 networks. */
export function translatedNetworks(networks: readonly string[]): readonly string[] {
  return networks.flatMap((network) => {
    const [address = '', bits = '32'] = network.split('/');
    if (!isIPv4(address)) return [];
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
    const groups = [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(':');
    return PREFIXES.map((prefix) => `${prefix}${groups}/${PREFIX_BITS + Number(bits)}`);
  });
}
