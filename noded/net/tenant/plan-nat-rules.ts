import { isIPv4, isIPv6 } from 'node:net';
import type { NetworkGuest } from '#shared/contract/network.ts';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { METADATA_NETWORKS } from '../../host/metadata-networks.ts';
import { planPrivateChain } from '../channel/reach-rules.ts';
import type { NatNames } from './nat-names.ts';

export interface NatNetwork {
  readonly name: string;
  readonly bridge: string;
  readonly network: string;
  readonly gateway: string;
  /** Domains that names of guests may belong to. */
  readonly domains: readonly string[];
  /** Names of instances with an address in the network, on any node, running or stopped. */
  readonly members: readonly string[];
}

export interface NatPlan {
  readonly names: NatNames;
  readonly networks: readonly NatNetwork[];
  readonly guests: readonly NetworkGuest[];
  /** Devices of default routes. Guests reach the outside only through them. */
  readonly uplinks: readonly string[];
  /** Uplinks that forward only for these networks, because the host does not forward otherwise. */
  readonly lent: readonly string[];
  readonly policy: ReachPolicy;
}

/** Each connection takes an entry in a table that the whole host shares. */
const CONNECTIONS_OF_GUEST = 4096;
/** dnsmasq accepts at most 20 TCP connections and 150 pending upstream queries. */
const DNS_CONNECTIONS_OF_GUEST = 4;
const QUESTIONS_PER_SECOND = 200;
const QUESTIONS_AT_ONCE = 400;
const GROUPS = ['224.0.0.0/4', '255.255.255.255/32'];
const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;
const DEVICE = /^[A-Za-z0-9_.@:-]{1,15}$/;
const TABLE = /^[a-z][a-z0-9-]{0,63}$/;
const PREFIX = /\/\d{1,2}$/;
/** nft reads a number that begins with 0 as octal. */
const IPV4 = { test: isIPv4 };
/** Addresses of link protocols (IEEE 802.1D), which bridges handle apart. */
const LINK_PROTOCOLS = 'ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00';
/** Families with a table of the node's networks. */
export const RULE_FAMILIES = ['inet', 'bridge', 'arp'] as const;
const REJECT = 'reject with icmpx type admin-prohibited';

/**
 * Plans the replacement of all rules of this node's networks in one transaction. Adds each table
 * first, because nft fails to delete a missing table.
 */
export function planNatRules(plan: NatPlan): string {
  checkWords(plan);
  return [
    planNatRulesRemoval(plan.names),
    planPorts(plan),
    planTaps(plan),
    planHost(plan),
    '',
  ].join('\n');
}

export function planNatRulesRemoval({ table }: NatNames): string {
  if (!TABLE.test(table)) throw new Error(`not valid in an nft table: ${table}`);
  return RULE_FAMILIES.map(
    (family) => `add table ${family} ${table}\ndelete table ${family} ${table}`,
  ).join('\n');
}

/**
 * Limits frames of a guest to its own MAC, IPv4 address, ARP sender and DHCP client address, before
 * the bridge learns from them. A TAP without a chain passes nothing.
 */
function planPorts({ names: { table, tapPrefix }, guests }: NatPlan): string {
  return `add table bridge ${table}
add chain bridge ${table} ports { type filter hook prerouting priority -300; policy accept; }
add rule bridge ${table} ports iifname "${tapPrefix}*" ${LINK_PROTOCOLS} drop
add chain bridge ${table} local { type filter hook input priority -300; policy accept; }
add rule bridge ${table} local iifname "${tapPrefix}*" ${LINK_PROTOCOLS} drop
${guests
  .map(({ device, mac, ip }) => {
    const chain = `bridge ${table} from_${device}`;
    const hex = `0x${mac.replaceAll(':', '')}`;
    // The client's MAC follows 8 bytes of UDP header and 28 of DHCP. A packet that ends before it,
    // such as a fragment, matches neither this nor its opposite.
    const forSelf = `@th,288,48 ${hex}`;
    return `add chain ${chain}
add rule ${chain} ether saddr != ${mac} drop
add rule ${chain} ether type ip ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 ${forSelf} accept
add rule ${chain} ether type ip ip saddr != ${ip} drop
add rule ${chain} ether type ip udp sport 67 drop
add rule ${chain} ether type ip udp dport 67 ${forSelf} accept
add rule ${chain} ether type ip udp dport 67 drop
add rule ${chain} ether type ip accept
add rule ${chain} arp htype 1 arp ptype ip arp operation { request, reply } arp saddr ether ${mac} arp saddr ip { 0.0.0.0, ${ip} } accept
add rule ${chain} drop
add rule bridge ${table} ports iifname "${device}" goto from_${device}`;
  })
  .join('\n')}
add rule bridge ${table} ports iifname "${tapPrefix}*" drop`;
}

/**
 * Drops packets of guests that arrive on the TAP itself. The bridge hands a frame of a link
 * protocol to the host as received on the TAP, so that its packet would bypass the rules for
 * bridges.
 */
function planTaps({ names: { table, tapPrefix } }: NatPlan): string {
  return [
    `add table inet ${table}`,
    `add chain inet ${table} taps { type filter hook prerouting priority raw; policy accept; }`,
    `add rule inet ${table} taps iifname "${tapPrefix}*" drop`,
    `add table arp ${table}`,
    `add chain arp ${table} taps { type filter hook input priority filter; policy accept; }`,
    `add rule arp ${table} taps iifname "${tapPrefix}*" drop`,
  ].join('\n');
}

/** Plans the access of guests to the host, and through it to the outside. */
function planHost({ names, networks, guests, uplinks, lent, policy }: NatPlan): string {
  const table = `inet ${names.table}`;
  const bridges = `"${names.bridgePrefix}*"`;
  const closed = [...METADATA_NETWORKS.filter((network) => !isIPv6(bare(network))), ...GROUPS];
  const outside = uplinks.map((device) => `"${device}"`).join(', ');
  const limitConnections = `ct state new add @connections { ip saddr ct count over ${CONNECTIONS_OF_GUEST} } ${REJECT}`;
  const lines = [
    `add table ${table}`,
    `add set ${table} connections { type ipv4_addr; size 65535; flags dynamic; }`,
    `add set ${table} dns_connections { type ipv4_addr; size 65535; flags dynamic; }`,
    `add set ${table} questions { type ipv4_addr; size 65535; flags dynamic; timeout 1m; }`,
    `add chain ${table} from_guests`,
    `add rule ${table} from_guests udp sport 68 udp dport 67 accept`,
    `add rule ${table} from_guests ${limitConnections}`,
    `add rule ${table} from_guests tcp dport 53 ct state new add @dns_connections { ip saddr ct count over ${DNS_CONNECTIONS_OF_GUEST} } ${REJECT}`,
    `add rule ${table} from_guests udp dport 53 update @questions { ip saddr limit rate over ${QUESTIONS_PER_SECOND}/second burst ${QUESTIONS_AT_ONCE} packets } drop`,
    ...networks.flatMap(({ bridge, gateway }) => {
      const asked = `add rule ${table} from_guests iifname "${bridge}" ip daddr ${gateway}`;
      return [
        `${asked} meta l4proto { tcp, udp } th dport 53 accept`,
        `${asked} icmp type echo-request accept`,
      ];
    }),
    `add rule ${table} from_guests ct state established,related accept`,
    `add rule ${table} from_guests ${REJECT}`,
    `add chain ${table} input { type filter hook input priority filter; policy accept; }`,
    `add rule ${table} input iifname ${bridges} goto from_guests`,
    ...planPrivateChain(table, policy),
    `add chain ${table} outward`,
    ...networks.map(
      ({ bridge }) => `add rule ${table} outward iifname "${bridge}" oifname "${bridge}" accept`,
    ),
    `add rule ${table} outward ip daddr { ${closed.join(', ')} } ${REJECT}`,
    ...planConfined(guests, policy).map(
      (whose) => `add rule ${table} outward ${whose}jump private`,
    ),
    `add rule ${table} outward ${limitConnections}`,
    ...(outside === '' ? [] : [`add rule ${table} outward oifname { ${outside} } accept`]),
    `add rule ${table} outward ${REJECT}`,
    `add chain ${table} inward`,
    `add rule ${table} inward ct state established,related accept`,
    `add rule ${table} inward drop`,
    `add chain ${table} forward { type filter hook forward priority filter; policy accept; }`,
    `add rule ${table} forward iifname ${bridges} goto outward`,
    `add rule ${table} forward oifname ${bridges} goto inward`,
    ...lent.map(
      (device) =>
        `add rule ${table} forward iifname "${device}" drop comment "the host forwards for these networks alone"`,
    ),
    `add chain ${table} postrouting { type nat hook postrouting priority srcnat; policy accept; }`,
    ...(outside === '' ? [] : networks).map(
      ({ network }) =>
        `add rule ${table} postrouting ip saddr ${network} oifname { ${outside} } masquerade`,
    ),
  ];
  return lines.join('\n');
}

/** Matches packets of the guests that reach no private networks; empty for all guests. */
function planConfined(guests: readonly NetworkGuest[], policy: ReachPolicy): readonly string[] {
  if (policy.confinesAll) return [''];
  const confined = guests.filter(({ reach }) => reach === 'public').map(({ ip }) => ip);
  return confined.length === 0 ? [] : [`ip saddr { ${[...new Set(confined)].join(', ')} } `];
}

/** Refuses record values that are not plain words, so that no record can inject nft syntax. */
function checkWords({ networks, guests, uplinks, lent }: NatPlan): void {
  const words: readonly (readonly [{ test(word: string): boolean }, readonly string[]])[] = [
    [DEVICE, [...uplinks, ...lent, ...guests.map(({ device }) => device)]],
    [DEVICE, networks.map(({ bridge }) => bridge)],
    [IPV4, networks.map(({ network }) => network.replace(PREFIX, ''))],
    [IPV4, networks.map(({ gateway }) => gateway)],
    [IPV4, guests.map(({ ip }) => ip)],
    [MAC, guests.map(({ mac }) => mac)],
  ];
  for (const [pattern, values] of words)
    for (const value of values)
      if (!pattern.test(value))
        throw new Error(`not valid in an nft rule: ${JSON.stringify(value)}`);
}

function bare(network: string): string {
  return network.split('/', 1)[0] ?? '';
}
