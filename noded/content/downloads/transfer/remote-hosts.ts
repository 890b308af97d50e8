import { BlockList, isIP } from 'node:net';
import { familyOf } from './address-policy.ts';

/**
 * Fragment that marks URLs from the remote API. Fragments are not sent to servers, and stay with
 * the URL when it is stored and shown. Downloads of marked URLs reach only hosts of the internet,
 * and hosts that the operator named, on any node and at any later time.
 */
const MARK = '#remote';

/** Marks a URL. Replaces its fragment, which has no meaning. */
export function markRemote(url: string): string {
  return url.split('#', 1)[0] + MARK;
}

export function isMarkedRemote(url: URL): boolean {
  return url.hash === MARK;
}

export interface RemoteHosts {
  /** @param host the name or address in the URL */
  includes(address: string, host: string): boolean;
}

/** @param hosts names, addresses and networks (ADDRESS/BITS) */
export function parseRemoteHosts(hosts: readonly string[]): RemoteHosts {
  const names = new Set(hosts.map(bare));
  const networks = new BlockList();
  for (const host of hosts) {
    const [address = '', bits] = host.split('/');
    if (bits !== undefined) networks.addSubnet(address, Number(bits), familyOf(address));
    else if (isIP(address) !== 0) networks.addAddress(address, familyOf(address));
  }
  return {
    includes: (address, host) =>
      names.has(bare(host)) || networks.check(address, familyOf(address)),
  };
}

function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
