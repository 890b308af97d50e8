import { existsSync, writeFileSync } from 'node:fs';
import { DHCP_SERVER_PORT } from './channel-ports.ts';

type Settings = Readonly<Record<string, string>>;

/**
 * Settings of each device and of new devices (`default`). `all` counts too: for most settings the
 * kernel applies the stricter value.
 */
const IPV4_DEVICE: Settings = {
  forwarding: '0',
  rp_filter: '1',
  accept_source_route: '0',
  accept_redirects: '0',
  secure_redirects: '0',
  send_redirects: '0',
  proxy_arp: '0',
  route_localnet: '0',
  // A hostile guest must not fill the host's kernel log.
  log_martians: '0',
  // All TAPs have the same address. Answer ARP only on the device that received the request, and
  // use its address as sender.
  arp_ignore: '1',
  arp_announce: '2',
  arp_accept: '0',
  arp_notify: '0',
};

const IPV6_DEVICE: Settings = {
  forwarding: '0',
  accept_ra: '0',
  accept_redirects: '0',
  // 0 would accept type 2 headers.
  accept_source_route: '-1',
  autoconf: '0',
  router_solicitations: '0',
  accept_dad: '0',
  dad_transmits: '0',
  proxy_ndp: '0',
  use_tempaddr: '0',
  // No interface may configure an address by itself.
  addr_gen_mode: '1',
  disable_ipv6: '0',
};

const NAMESPACE: Settings = {
  'net/ipv4/ip_unprivileged_port_start': String(DHCP_SERVER_PORT),
  'net/ipv4/ip_forward': '0',
  'net/ipv4/icmp_echo_ignore_broadcasts': '1',
  'net/ipv4/tcp_syncookies': '1',
};

/** Returns false when the kernel runs without IPv6 (`ipv6.disable=1`). */
export function hasIpv6(): boolean {
  return existsSync('/proc/sys/net/ipv6/conf/default');
}

/**
 * Returns the settings of the current network namespace by path below /proc/sys.
 * @param devices beside `all` and `default`
 */
export function planNamespaceSysctls(devices: readonly string[], withIpv6: boolean): Settings {
  const settings: Record<string, string> = { ...NAMESPACE };
  for (const device of ['all', 'default', ...devices]) {
    Object.assign(settings, planDeviceSysctls(device, withIpv6));
  }
  return settings;
}

export function planDeviceSysctls(device: string, withIpv6: boolean): Settings {
  const entries = Object.entries(IPV4_DEVICE).map(([key, value]): [string, string] => [
    `net/ipv4/conf/${device}/${key}`,
    value,
  ]);
  if (withIpv6) {
    for (const [key, value] of Object.entries(IPV6_DEVICE)) {
      // `conf/all` has no such key.
      if (device === 'all' && key === 'addr_gen_mode') continue;
      entries.push([`net/ipv6/conf/${device}/${key}`, value]);
    }
  }
  return Object.fromEntries(entries);
}

/** Synchronous, because it writes to the network namespace of this thread. */
export function applySysctls(settings: Settings): void {
  for (const [path, value] of Object.entries(settings)) writeFileSync(`/proc/sys/${path}`, value);
}

/**
 * Outgoing connections must not use the ports of services as source ports, because the filter does
 * not track those. Listeners on these ports run without privilege.
 */
export function planServicePortSysctls(ports: readonly number[]): Settings {
  return {
    'net/ipv4/ip_local_reserved_ports': ports.join(',') || '\n',
    'net/ipv4/ip_unprivileged_port_start': String(Math.min(DHCP_SERVER_PORT, ...ports)),
  };
}
