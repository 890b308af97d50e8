import type { NetworkGuest } from '#shared/contract/network.ts';
import { NOTE_IDENTITY, WITHOUT_CORES } from '#shared/sandbox/plan-sandbox.ts';
import { isInDomains } from './own-domains.ts';
import type { NatNetwork } from './plan-nat-rules.ts';

/** Files of a network's dnsmasq. It writes its leases and reads the others. */
export interface DnsmasqFiles {
  /** The process's line of /proc/<pid>/stat; readable by root only. */
  readonly identity: string;
  readonly leases: string;
  /** Addresses for DHCP by MAC. */
  readonly reservations: string;
  /** Addresses and names. */
  readonly hosts: string;
}

const LEASE = '1h';
/**
 * First labels that are never published, in any domain. Programs use the host of that name as
 * themselves, as their proxy (WPAD asks for `wpad.DOMAIN`) or as their IPv6 router (RFC 5214).
 */
const UNTOLD: ReadonlySet<string> = new Set(['localhost', 'wpad', 'isatap']);
/**
 * net_bind_service opens ports below 1024. dnsmasq refuses to serve DHCP without net_admin. That
 * capability has power over the host's network, so dnsmasq listens only on its guests' bridge.
 */
const CAPABILITIES = '-all,+net_bind_service,+net_admin';

/**
 * Plans a command that writes its identity, drops root's privileges and executes dnsmasq without
 * the host's configuration.
 */
export function planDnsmasq(
  { bridge, network, gateway }: NatNetwork,
  files: DnsmasqFiles,
  uid: number,
): readonly [string, ...string[]] {
  const script = [
    ...NOTE_IDENTITY,
    `exec ${WITHOUT_CORES} unshare --ipc -- setpriv --reuid=${uid} --regid=${uid} --clear-groups --inh-caps=${CAPABILITIES} --ambient-caps=${CAPABILITIES} --bounding-set=${CAPABILITIES} --no-new-privs -- "$@"`,
  ];
  return [
    '/bin/sh',
    ...['-c', script.join('\n'), 'sh', files.identity],
    ...['dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--pid-file='],
    ...['--log-facility=-', '--quiet-dhcp', '--no-ping', '--no-hosts'],
    ...[`--interface=${bridge}`, '--except-interface=lo', '--bind-interfaces'],
    ...[`--dhcp-range=${network.split('/')[0] ?? ''},static,${maskOf(network)},${LEASE}`],
    // Unknown clients get no address. A known client is identified by its MAC; the name in its
    // request is ignored.
    ...['--dhcp-authoritative', '--dhcp-ignore=tag:!known', '--dhcp-ignore-names'],
    ...['--dhcp-ignore-clid', '--dhcp-broadcast'],
    ...[`--dhcp-option=option:router,${gateway}`, `--dhcp-option=option:dns-server,${gateway}`],
    ...[`--dhcp-hostsfile=${files.reservations}`, `--addn-hosts=${files.hosts}`],
    ...[`--dhcp-leasefile=${files.leases}`, '--domain-needed', '--bogus-priv', '--local-ttl=10'],
  ];
}

/** @see dnsmasq(8), dhcp-host */
export function formatReservations(guests: readonly NetworkGuest[]): string {
  return guests.map(({ mac, ip }) => `${mac},${ip}\n`).join('');
}

/**
 * Drops leases of addresses that now belong to another guest. dnsmasq would refuse these addresses
 * to their new owner until the lease ends.
 * @param text lines of time, MAC, address, name, client
 */
export function dropForeignLeases(text: string, guests: readonly NetworkGuest[]): string {
  const owners = new Map(guests.map(({ ip, mac }) => [ip, mac] as const));
  return text
    .split('\n')
    .filter((line) => {
      const [, mac, ip = ''] = line.split(' ');
      return (owners.get(ip) ?? mac) === mac;
    })
    .join('\n');
}

/**
 * Writes the full names in the network's domains, and the first labels that belong to one instance.
 * A label of two instances is left out, even if it is the full name of one of them.
 * @param members names of instances of the network that may be stopped, or run on other nodes
 */
export function formatHosts(
  guests: readonly NetworkGuest[],
  { domains, members }: Pick<NatNetwork, 'domains' | 'members'>,
): string {
  const owners = new Map<string, Set<string>>();
  for (const name of [...guests.map((guest) => guest.name), ...members])
    owners.getOrInsert(labelOf(name), new Set()).add(name);
  const isOwn = (name: string): boolean => {
    const label = labelOf(name);
    if (UNTOLD.has(label)) return false;
    return name === label ? owners.get(name)?.size === 1 : isInDomains(name, domains);
  };
  return guests
    .map(({ ip, name }) => {
      const names = [...new Set([name, labelOf(name)])].filter(isOwn);
      return names.length === 0 ? '' : `${ip} ${names.join(' ')}\n`;
    })
    .join('');
}

function labelOf(name: string): string {
  return name.split('.', 1)[0] ?? name;
}

/** Returns `255.255.255.0` for `10.9.0.0/24`. */
function maskOf(network: string): string {
  const prefix = Number(network.split('/')[1]);
  const mask = 2 ** 32 - 2 ** (32 - prefix);
  return [24, 16, 8, 0].map((shift) => Math.floor(mask / 2 ** shift) % 256).join('.');
}
