import { hypervisorParameters } from '#shared/contract/parameter-keys.ts';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import {
  DHCP_CLIENT_PORT,
  DHCP_SERVER_PORT,
  HTTP_PORT,
  SERVICE_SOLICITED_NODE,
} from './channel-ports.ts';

export interface ChannelGuest {
  /** In 169.254.0.0/16. */
  readonly ip: string;
  /** Lower case. */
  readonly mac: string;
  /**
   * Connections that the guest may open per second (default 400), with bursts of twice as many.
   * Datagrams have a limit of the same size.
   */
  readonly newConnectionsPerSecond?: number | undefined;
  /** The guest's firmware boots by this TAP and needs the advertisement of a missing router. */
  readonly boots?: boolean;
}

/**
 * Plans the packet filter between a guest and the node in nft's own language, one transaction per
 * function. (nft's JSON lacks `dynamic` before version 1.0.7.)
 *
 * A packet from a TAP passes the TAP's own chain, which allows one MAC and one source address. A
 * TAP without a chain passes nothing. Accepted packets reach only the services. Services are not
 * tracked, so that a guest cannot fill the connection table, which all guests share. Only
 * connections that start in the namespace are tracked.
 */

/**
 * Link-local addresses that a guest may use at a time. Each occupies an entry of a neighbour table
 * that all namespaces of the host share. A stock guest has one.
 */
const MAX_IPV6_ADDRESSES = 16;
const NEW_CONNECTIONS_PER_SECOND = hypervisorParameters.metadata_connection_rate.default;
const DEVICE_PATTERN = /^[A-Za-z][A-Za-z0-9.]{0,14}$/;
const MAC_PATTERN = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;
const RATE_PATTERN = /^[1-9]\d{0,6}$/;
const IPV4_PATTERN = /^\d{1,3}(\.\d{1,3}){3}$/;
/** Service's IPv6 address as a number, for matches that nft 1.0.6 has no name for. */
const SERVICE_IPV6_NUMBER = `0xfe80${'0'.repeat(20)}a9fea9fe`;

/**
 * Returns the rules that do not depend on a guest. A second application replaces them and keeps the
 * TAPs' own rules and the service ports.
 */
export function planBaseRules(): string {
  return `
add table inet gnt
add map inet gnt sources { type ifname : verdict; }
add set inet gnt services { type inet_service; }
add set inet gnt udp_services { type inet_service; }

add chain inet gnt prerouting { type filter hook prerouting priority raw; policy drop; }
flush chain inet gnt prerouting
add rule inet gnt prerouting iifname "lo" accept
add rule inet gnt prerouting iifname vmap @sources

add chain inet gnt to_service
flush chain inet gnt to_service
add rule inet gnt to_service tcp dport ${HTTP_PORT} notrack accept
add rule inet gnt to_service tcp dport @services notrack accept
add rule inet gnt to_service udp dport ${DHCP_SERVER_PORT} notrack accept
add rule inet gnt to_service udp dport @udp_services notrack accept
add rule inet gnt to_service icmp type echo-request notrack accept
add rule inet gnt to_service icmpv6 type echo-request notrack accept
add rule inet gnt to_service meta l4proto { tcp, icmp, ipv6-icmp } accept comment "answers: chain input asks whether we began"

add chain inet gnt input { type filter hook input priority filter; policy drop; }
flush chain inet gnt input
add rule inet gnt input iifname "lo" accept
add rule inet gnt input ct state established accept
add rule inet gnt input ct state related icmp type { destination-unreachable, time-exceeded } accept
add rule inet gnt input ct state related icmpv6 type { destination-unreachable, packet-too-big, time-exceeded } accept
add rule inet gnt input tcp dport ${HTTP_PORT} accept
add rule inet gnt input tcp dport @services accept
add rule inet gnt input udp dport ${DHCP_SERVER_PORT} accept
add rule inet gnt input udp dport @udp_services accept
add rule inet gnt input icmp type echo-request accept
add rule inet gnt input icmpv6 type { echo-request, nd-neighbor-solicit, nd-neighbor-advert } accept

add chain inet gnt forward { type filter hook forward priority filter; policy drop; }
flush chain inet gnt forward

add chain inet gnt output { type filter hook output priority raw; policy accept; }
flush chain inet gnt output
add rule inet gnt output tcp sport ${HTTP_PORT} notrack
add rule inet gnt output tcp sport @services notrack
add rule inet gnt output udp sport ${DHCP_SERVER_PORT} notrack
add rule inet gnt output udp sport @udp_services notrack
add rule inet gnt output icmp type echo-reply notrack
add rule inet gnt output icmpv6 type echo-reply notrack

add table arp gnt
add map arp gnt sources { type ifname : verdict; }
add chain arp gnt input { type filter hook input priority filter; policy drop; }
flush chain arp gnt input
add rule arp gnt input iifname vmap @sources
`;
}

/**
 * Plans a router advertisement of a missing router: lifetime 0, no prefix, no DHCPv6. Without it
 * iPXE waits 16 seconds for an IPv6 router before it uses its DHCP address. The kernel rewrites the
 * solicitation, which has the same length, and sends it back. The answer contains no bytes of the
 * guest and involves no process. The checksum is constant. Other guests work without the
 * advertisement.
 */
function planAdvertisement(device: string): string {
  const table = `netdev gnt_${device}`;
  return `
add table ${table}
add chain ${table} advertise { type filter hook ingress device "${device}" priority filter; policy accept; }
add rule ${table} advertise icmpv6 type nd-router-solicit ip6 hoplimit 255 meta length 56 ether saddr set 02:00:a9:fe:a9:fe ether daddr set 33:33:00:00:00:01 ip6 saddr set ${SERVICE_IPV6} ip6 daddr set ff02::1 @th,0,64 set 0x8600283300000000 @th,64,64 set 0 fwd to "${device}"
`;
}

/** Adds the table first, because nft fails to delete a missing table. */
function planAdvertisementRemoval(device: string): string {
  return `
add table netdev gnt_${device}
delete table netdev gnt_${device}
`;
}

/** Plans the rules of a TAP, which replace its earlier rules. */
export function planTapRules(device: string, guest: ChannelGuest): string {
  const { mac, newConnectionsPerSecond: rate = NEW_CONNECTIONS_PER_SECOND } = guest;
  assertMatches(device, DEVICE_PATTERN);
  assertMatches(guest.ip, IPV4_PATTERN);
  assertMatches(mac, MAC_PATTERN);
  assertMatches(String(rate), RATE_PATTERN);
  const inet = `inet gnt from_${device}`;
  const arp = `arp gnt from_${device}`;
  const seen = `update @addresses_${device} { ip6 saddr }`;
  const isForService = `ip6 daddr ${SERVICE_SOLICITED_NODE} icmpv6 type nd-neighbor-solicit`;
  return `
${addressSet(device)}
add chain ${inet}
flush chain ${inet}
add rule ${inet} ether saddr != ${mac} drop
add rule ${inet} tcp flags & (fin | syn | rst | ack) == syn limit rate over ${rate}/second burst ${2 * rate} packets drop
add rule ${inet} meta l4proto udp limit rate over ${rate}/second burst ${2 * rate} packets drop
add rule ${inet} ip saddr ${guest.ip} ip daddr ${SERVICE_IPV4} goto to_service
add rule ${inet} ip saddr { 0.0.0.0, ${guest.ip} } ip daddr 255.255.255.255 udp sport ${DHCP_CLIENT_PORT} udp dport ${DHCP_SERVER_PORT} notrack accept
add rule ${inet} ip6 saddr ${SERVICE_IPV6} drop
add rule ${inet} icmpv6 type nd-neighbor-advert @th,64,128 ${SERVICE_IPV6_NUMBER} drop comment "nobody else has our address"
add rule ${inet} ip6 saddr fe80::/10 ip6 daddr ${SERVICE_IPV6} ${seen} goto to_service
add rule ${inet} ip6 saddr fe80::/10 ${isForService} ${seen} accept
add rule ${inet} ip6 saddr :: ${isForService} accept comment "the kernel defends our address"
add rule ${inet} drop
add element inet gnt sources { "${device}" : goto from_${device} }

add chain ${arp}
flush chain ${arp}
add rule ${arp} @ll,48,48 0x${mac.replaceAll(':', '')} arp htype 1 arp operation request arp saddr ether ${mac} arp saddr ip { 0.0.0.0, ${guest.ip} } arp daddr ip ${SERVICE_IPV4} accept
add rule ${arp} drop
add element arp gnt sources { "${device}" : goto from_${device} }
${planAdvertisementRemoval(device)}${guest.boots === true ? planAdvertisement(device) : ''}`;
}

/**
 * Plans the removal of a TAP's rules. Adds each part first, because nft fails to delete missing
 * parts.
 */
export function planTapRulesRemoval(device: string): string {
  assertMatches(device, DEVICE_PATTERN);
  const removal = (family: 'inet' | 'arp'): string => `
add chain ${family} gnt from_${device}
flush chain ${family} gnt from_${device}
add element ${family} gnt sources { "${device}" : goto from_${device} }
delete element ${family} gnt sources { "${device}" }
delete chain ${family} gnt from_${device}`;
  return `
${addressSet(device)}
${removal('inet')}
${removal('arp')}
delete set inet gnt addresses_${device}
${planAdvertisementRemoval(device)}`;
}

/** Ports beside HTTP and DHCP that guests may reach. */
export interface ServicePorts {
  readonly tcp: readonly number[];
  readonly udp: readonly number[];
}

export function planServicePorts({ tcp, udp }: ServicePorts): string {
  const replace = (set: string, ports: readonly number[]): string => `
flush set inet gnt ${set}
${ports.length === 0 ? '' : `add element inet gnt ${set} { ${ports.join(', ')} }`}`;
  return `${replace('services', tcp)}${replace('udp_services', udp)}
`;
}

/**
 * When the set is full, the rule that adds to it does not match and a packet from a new address is
 * dropped.
 */
function addressSet(device: string): string {
  return `add set inet gnt addresses_${device} { type ipv6_addr; size ${MAX_IPV6_ADDRESSES}; flags dynamic, timeout; timeout 10m; }`;
}

function assertMatches(value: string, pattern: RegExp): void {
  if (!pattern.test(value)) throw new Error(`not valid in an nft rule: ${JSON.stringify(value)}`);
}
