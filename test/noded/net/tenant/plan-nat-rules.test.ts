import assert from 'node:assert/strict';
import { test } from 'node:test';
import { natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import {
  type NatPlan,
  planNatRules,
  planNatRulesRemoval,
} from '../../../../noded/net/tenant/plan-nat-rules.ts';

const network = {
  name: 'lan',
  bridge: 'gb00001111',
  network: '10.9.0.0/24',
  gateway: '10.9.0.1',
  domains: [],
  members: [],
};
const guest = {
  device: 'gn0000aaaa',
  mac: 'aa:00:00:00:00:01',
  ip: '10.9.0.5',
  name: 'web.example.com',
  network: 'lan',
  reach: 'all' as const,
};
const plan: NatPlan = {
  names: natNamesOf('/'),
  networks: [network],
  guests: [guest],
  uplinks: ['eth0'],
  lent: [],
  policy: { confinesAll: false, networks: [] },
};

const linesOf = (changes: Partial<NatPlan>): readonly string[] =>
  planNatRules({ ...plan, ...changes })
    .replaceAll(plan.names.table, 'T')
    .split('\n');
/** Returns the lines that a change adds to the plan. */
const added = (changes: Partial<NatPlan>): readonly string[] => {
  const before = new Set(linesOf({}));
  return linesOf(changes).filter((line) => !before.has(line));
};
/** Returns the lines that a change removes. */
const removed = (changes: Partial<NatPlan>): readonly string[] => {
  const after = new Set(linesOf(changes));
  return linesOf({}).filter((line) => !after.has(line));
};

test('the rules of one guest in one network replace all earlier rules', () => {
  const [bridge, tap] = [plan.names.bridgePrefix, plan.names.tapPrefix];
  const lines = linesOf({}).map((line) =>
    line.replaceAll(`${bridge}*`, 'BRIDGE*').replaceAll(`${tap}*`, 'TAP*'),
  );
  assert.deepEqual(lines, [
    'add table inet T',
    'delete table inet T',
    'add table bridge T',
    'delete table bridge T',
    'add table arp T',
    'delete table arp T',
    'add table bridge T',
    'add chain bridge T ports { type filter hook prerouting priority -300; policy accept; }',
    'add rule bridge T ports iifname "TAP*" ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop',
    'add chain bridge T local { type filter hook input priority -300; policy accept; }',
    'add rule bridge T local iifname "TAP*" ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop',
    'add chain bridge T from_gn0000aaaa',
    'add rule bridge T from_gn0000aaaa ether saddr != aa:00:00:00:00:01 drop',
    'add rule bridge T from_gn0000aaaa ether type ip ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 @th,288,48 0xaa0000000001 accept',
    'add rule bridge T from_gn0000aaaa ether type ip ip saddr != 10.9.0.5 drop',
    'add rule bridge T from_gn0000aaaa ether type ip udp sport 67 drop',
    'add rule bridge T from_gn0000aaaa ether type ip udp dport 67 @th,288,48 0xaa0000000001 accept',
    'add rule bridge T from_gn0000aaaa ether type ip udp dport 67 drop',
    'add rule bridge T from_gn0000aaaa ether type ip accept',
    'add rule bridge T from_gn0000aaaa arp htype 1 arp ptype ip arp operation { request, reply } arp saddr ether aa:00:00:00:00:01 arp saddr ip { 0.0.0.0, 10.9.0.5 } accept',
    'add rule bridge T from_gn0000aaaa drop',
    'add rule bridge T ports iifname "gn0000aaaa" goto from_gn0000aaaa',
    'add rule bridge T ports iifname "TAP*" drop',
    'add table inet T',
    'add chain inet T taps { type filter hook prerouting priority raw; policy accept; }',
    'add rule inet T taps iifname "TAP*" drop',
    'add table arp T',
    'add chain arp T taps { type filter hook input priority filter; policy accept; }',
    'add rule arp T taps iifname "TAP*" drop',
    'add table inet T',
    'add set inet T connections { type ipv4_addr; size 65535; flags dynamic; }',
    'add set inet T dns_connections { type ipv4_addr; size 65535; flags dynamic; }',
    'add set inet T questions { type ipv4_addr; size 65535; flags dynamic; timeout 1m; }',
    'add chain inet T from_guests',
    'add rule inet T from_guests udp sport 68 udp dport 67 accept',
    'add rule inet T from_guests ct state new add @connections { ip saddr ct count over 4096 } reject with icmpx type admin-prohibited',
    'add rule inet T from_guests tcp dport 53 ct state new add @dns_connections { ip saddr ct count over 4 } reject with icmpx type admin-prohibited',
    'add rule inet T from_guests udp dport 53 update @questions { ip saddr limit rate over 200/second burst 400 packets } drop',
    'add rule inet T from_guests iifname "gb00001111" ip daddr 10.9.0.1 meta l4proto { tcp, udp } th dport 53 accept',
    'add rule inet T from_guests iifname "gb00001111" ip daddr 10.9.0.1 icmp type echo-request accept',
    'add rule inet T from_guests ct state established,related accept',
    'add rule inet T from_guests reject with icmpx type admin-prohibited',
    'add chain inet T input { type filter hook input priority filter; policy accept; }',
    'add rule inet T input iifname "BRIDGE*" goto from_guests',
    'add chain inet T private',
    'add rule inet T private ip daddr { 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 192.0.0.0/24, 198.18.0.0/15, 224.0.0.0/3 } reject with icmpx type admin-prohibited',
    'add rule inet T private ip6 daddr { fc00::/7, fec0::/10, 2002::/16, 2001::/32, 64:ff9b:1::/48, ff00::/8, 64:ff9b::a00:0/104, ::ffff:0:a00:0/104, 64:ff9b::ac10:0/108, ::ffff:0:ac10:0/108, 64:ff9b::c0a8:0/112, ::ffff:0:c0a8:0/112, 64:ff9b::6440:0/106, ::ffff:0:6440:0/106, 64:ff9b::c000:0/120, ::ffff:0:c000:0/120, 64:ff9b::c612:0/111, ::ffff:0:c612:0/111, 64:ff9b::e000:0/99, ::ffff:0:e000:0/99 } reject with icmpx type admin-prohibited',
    'add chain inet T outward',
    'add rule inet T outward iifname "gb00001111" oifname "gb00001111" accept',
    'add rule inet T outward ip daddr { 169.254.0.0/16, 100.100.100.200/32, 192.0.0.192/32, 168.63.129.16/32, 224.0.0.0/4, 255.255.255.255/32 } reject with icmpx type admin-prohibited',
    'add rule inet T outward ct state new add @connections { ip saddr ct count over 4096 } reject with icmpx type admin-prohibited',
    'add rule inet T outward oifname { "eth0" } accept',
    'add rule inet T outward reject with icmpx type admin-prohibited',
    'add chain inet T inward',
    'add rule inet T inward ct state established,related accept',
    'add rule inet T inward drop',
    'add chain inet T forward { type filter hook forward priority filter; policy accept; }',
    'add rule inet T forward iifname "BRIDGE*" goto outward',
    'add rule inet T forward oifname "BRIDGE*" goto inward',
    'add chain inet T postrouting { type nat hook postrouting priority srcnat; policy accept; }',
    'add rule inet T postrouting ip saddr 10.9.0.0/24 oifname { "eth0" } masquerade',
    '',
  ]);
});

test('a guest that may not reach private networks is confined by its address, once', () => {
  const confined = { ...guest, reach: 'public' as const };
  assert.deepEqual(added({ guests: [confined, confined, { ...confined, ip: '10.9.0.6' }] }), [
    'add rule bridge T from_gn0000aaaa ether type ip ip saddr != 10.9.0.6 drop',
    'add rule bridge T from_gn0000aaaa arp htype 1 arp ptype ip arp operation { request, reply } arp saddr ether aa:00:00:00:00:01 arp saddr ip { 0.0.0.0, 10.9.0.6 } accept',
    'add rule inet T outward ip saddr { 10.9.0.5, 10.9.0.6 } jump private',
  ]);
  assert.deepEqual(added({ policy: { confinesAll: true, networks: ['10.1.0.0/16'] } }), [
    'add rule inet T private ip daddr 10.1.0.0/16 return',
    'add rule inet T private ip6 daddr 64:ff9b::a01:0/112 return',
    'add rule inet T private ip6 daddr ::ffff:0:a01:0/112 return',
    'add rule inet T outward jump private',
  ]);
});

test('guests reach no outside without an uplink, and a lent device forwards for them alone', () => {
  assert.deepEqual(removed({ uplinks: [] }), [
    'add rule inet T outward oifname { "eth0" } accept',
    'add rule inet T postrouting ip saddr 10.9.0.0/24 oifname { "eth0" } masquerade',
  ]);
  assert.equal(added({ uplinks: [] }).length, 0);
  assert.deepEqual(added({ uplinks: ['eth0', 'eth1'], lent: ['eth1'] }), [
    'add rule inet T outward oifname { "eth0", "eth1" } accept',
    'add rule inet T forward iifname "eth1" drop comment "the host forwards for these networks alone"',
    'add rule inet T postrouting ip saddr 10.9.0.0/24 oifname { "eth0", "eth1" } masquerade',
  ]);
});

test('values that are no plain words reach no rule', () => {
  const bad = 'x" accept';
  for (const changes of [
    { names: { ...plan.names, table: bad } },
    { uplinks: [bad] },
    { lent: [bad] },
    { guests: [{ ...guest, device: bad }] },
    { guests: [{ ...guest, mac: bad }] },
    { guests: [{ ...guest, ip: bad }] },
    { guests: [{ ...guest, ip: '010.9.0.5' }] },
    { networks: [{ ...network, bridge: bad }] },
    { networks: [{ ...network, gateway: bad }] },
    { networks: [{ ...network, network: bad }] },
    { networks: [{ ...network, network: '10.9.0.0/240' }] },
  ])
    assert.throws(
      () => planNatRules({ ...plan, ...changes }),
      /not valid in an nft/,
      JSON.stringify(changes),
    );
});

test('a removal names the tables of all families', () => {
  assert.deepEqual(planNatRulesRemoval({ ...plan.names, table: 'gnt-t' }).split('\n'), [
    'add table inet gnt-t',
    'delete table inet gnt-t',
    'add table bridge gnt-t',
    'delete table bridge gnt-t',
    'add table arp gnt-t',
    'delete table arp gnt-t',
  ]);
});
