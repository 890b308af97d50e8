import { BlockList, isIP } from 'node:net';
import { familyOf } from './address-policy.ts';

/**
 * Behind a URL that came from the remote API, as its fragment, which no server is sent: it is
 * stored and shown with the URL, and whoever downloads it, on whichever node and however much
 * later, asks hosts of the internet alone, and those that the operator named.
 */
const MARK = '#remote';

/** The same URL; a fragment that it had meant nothing. */
export function markRemote(url: string): string {
  return url.split('#', 1)[0] + MARK;
}

export function isMarkedRemote(url: URL): boolean {
  return url.hash === MARK;
}

/** Whom of this host's own networks a URL of the remote API may lead to. */
export interface RemoteHosts {
  /** @param host the name, or the address, that is written in the URL */
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
