import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { BlockList, isIPv6 } from 'node:net';
import { promisify } from 'node:util';
import { literalAddressOf } from './source-url.ts';

/** An operator's words must not make the host read its own cloud's metadata service, or another machine's on the link. */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
// AWS' metadata service over IPv6.
linkLocal.addAddress('fd00:ec2::254', 'ipv6');

/** BlockList looks into IPv4-mapped addresses by itself. */
export function isForbiddenAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  return linkLocal.check(bare, isIPv6(bare) ? 'ipv6' : 'ipv4');
}

/** Why a URL's host may not be asked: a link-local literal. Names are judged when they are resolved. */
export function refusalOf(url: URL): string | undefined {
  const literal = literalAddressOf(url);
  const isForbidden = literal !== undefined && isForbiddenAddress(literal);
  return isForbidden ? `${literal} is a link-local address` : undefined;
}

/** What a name resolves to was forbidden. */
export class ForbiddenAddressError extends Error {}

type LookupCallback = (
  error: Error | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** `dns.lookup` that gives no link-local address. */
export function safeLookup(
  hostname: string,
  options: LookupOptions,
  callback: LookupCallback,
): void {
  dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, []);
    const allowed = addresses.filter(({ address }) => !isForbiddenAddress(address));
    const [first] = allowed;
    if (!first) {
      const refusal = new ForbiddenAddressError(`${hostname} is a link-local address`);
      return callback(refusal, []);
    }
    if (options.all) callback(null, allowed);
    else callback(null, first.address, first.family);
  });
}

const lookupAll = promisify(dnsLookup);

/**
 * The address to give to a program that would resolve by itself.
 * @throws ForbiddenAddressError, or the resolver's error
 */
export async function resolveSafely(url: URL): Promise<string> {
  const literal = literalAddressOf(url);
  const addresses = literal
    ? [{ address: literal }]
    : await lookupAll(url.hostname, { all: true, order: 'ipv4first' });
  const allowed = addresses.find(({ address }) => !isForbiddenAddress(address));
  if (!allowed) throw new ForbiddenAddressError(`${url.hostname} is a link-local address`);
  return allowed.address;
}
