import { isIPv6 } from 'node:net';

/**
 * Returns the network of an address: an IPv4 address, or an IPv6 /64. A host with one IPv6 address
 * usually has its whole network of 2⁶⁴.
 */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  // A trailing IPv4 address counts as two groups.
  const given = left.length + right.length + (plain.includes('.') ? 1 : 0);
  const groups = [
    ...left,
    ...Array<string>(tail === undefined ? 0 : 8 - given).fill('0'),
    ...right,
  ];
  return `${groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
