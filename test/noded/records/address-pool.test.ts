import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  networkInfo,
  networkName,
  networkRange,
  type NetworkRecord,
} from '#shared/contract/network.ts';
import type { InstanceNic } from '#shared/contract/instance.ts';
import {
  compareAddresses,
  countFree,
  firstFree,
  overlap,
  requireUsable,
  sizeOf,
} from '../../../noded/records/address-pool.ts';
import { placeNics } from '../../../noded/records/place-nics.ts';

const pool = (network: string, others: Partial<NetworkRecord> = {}): NetworkRecord => ({
  ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111', network },
  ...{ gateway: null, macPrefix: null, reserved: [], tags: [] },
  connections: { node1: { mode: 'bridged', link: 'br0' } },
  ...others,
});
const none = new Set<string>();

test('a /30 has two addresses, of which a gateway is one', () => {
  const small = pool('10.0.0.4/30');
  assert.equal(sizeOf(small), 2);
  assert.equal(firstFree(small, none), '10.0.0.5');
  assert.equal(firstFree(small, new Set(['10.0.0.5'])), '10.0.0.6');
  assert.equal(firstFree(small, new Set(['10.0.0.5', '10.0.0.6'])), undefined);
  assert.equal(firstFree({ ...small, gateway: '10.0.0.5' }, none), '10.0.0.6');
  assert.equal(countFree({ ...small, gateway: '10.0.0.5' }, new Set(['10.0.0.6'])), 0);
});

test('a /16 has 65,534, up to the last', () => {
  const large = pool('172.16.0.0/16', { gateway: '172.16.255.254', reserved: ['172.16.0.1'] });
  assert.equal(sizeOf(large), 65_534);
  assert.equal(countFree(large, new Set(['172.16.9.9', '172.16.0.1'])), 65_531);
  const taken = new Set<string>();
  for (let host = 2; host < 65_533; host += 1)
    taken.add(`172.16.${Math.floor(host / 256)}.${host % 256}`);
  assert.equal(firstFree(large, taken), '172.16.255.253');
});

test('a high network is not a negative number', () => {
  assert.equal(firstFree(pool('223.255.255.0/24'), none), '223.255.255.1');
  assert.ok(compareAddresses('10.0.0.9', '10.0.0.10') < 0);
  assert.ok(overlap('10.0.0.0/16', '10.0.255.0/24'));
  assert.ok(!overlap('10.0.0.0/24', '10.0.1.0/24'));
});

test('refuses by name what no instance can have', () => {
  const lan = pool('10.0.0.0/24', { gateway: '10.0.0.1', reserved: ['10.0.0.9'] });
  const refusals = {
    '10.0.1.5': "is not in network 'lan' (10.0.0.0/24)",
    '10.0.0.0': "is the address of network 'lan' itself",
    '10.0.0.255': "is the broadcast address of network 'lan'",
    '10.0.0.1': "is the gateway of network 'lan'",
    '10.0.0.9': "is reserved in network 'lan'",
    '10.0.0.05': 'must be written as 10.0.0.5',
    '10.0.0.01': 'must be written as 10.0.0.1',
    '10.0.0.0x5': 'must be written as 10.0.0.5',
    '10.0.0.5\n': 'must be written as 10.0.0.5',
    '10.0..5': 'must be written as 10.0.0.5',
    nonsense: "is not in network 'lan' (10.0.0.0/24)",
  };
  for (const [ip, why] of Object.entries(refusals))
    assert.throws(() => requireUsable(lan, ip), { code: 'VALIDATION', message: `${ip} ${why}` });
  requireUsable(lan, '10.0.0.254');
});

test('networks are listed whatever address an instance has come to', () => {
  const info = { ...pool('10.0.0.0/24'), size: 254, free: 253 };
  const addresses = [{ ip: '10.0.0.05', instance: 'web' }];
  assert.deepEqual(networkInfo.parse({ ...info, addresses }).addresses, addresses);
});

test('a network is an IPv4 network from /30 to /16, and its name is a word of its own', () => {
  for (const good of ['10.0.0.0/30', '10.0.0.0/16'])
    assert.ok(networkRange.safeParse(good).success);
  for (const bad of ['10.0.0.1/24', '10.0.0.0/31', '10.0.0.0/15', '10.0.0.0', 'fd00::/64', ''])
    assert.equal(networkRange.safeParse(bad).success, false, bad);
  for (const bad of ['none', 'pool', 'Lan', '1lan', 'a/b', 'lan-', ''])
    assert.equal(networkName.safeParse(bad).success, false, bad);
});

const nic = (uuid: string, ip: string | null): InstanceNic => ({
  ...{ uuid, mac: 'aa:00:00:00:00:01', mode: 'bridged', link: null, name: null },
  ...{ ip, network: null, networkName: 'lan' },
});
const placed = (
  nics: readonly InstanceNic[],
  lan: NetworkRecord,
  taken: readonly string[] = [],
  former: readonly InstanceNic[] = [],
): InstanceNic[] =>
  placeNics(nics, {
    ...{ node: 'node1', former, networks: new Map([['lan', lan]]) },
    taken: new Map([['lan', new Set(taken)]]),
  });

test('NICs get free addresses, none of which another NIC of theirs was given', () => {
  const lan = pool('10.0.0.0/29', { gateway: '10.0.0.1' });
  const [first, second, third] = placed(
    [nic('a', 'pool'), nic('b', '10.0.0.2'), nic('c', null)],
    lan,
    ['10.0.0.3'],
  );
  assert.deepEqual([first?.ip, second?.ip, third?.ip], ['10.0.0.4', '10.0.0.2', '10.0.0.5']);
  assert.deepEqual(first?.network?.addresses, ['10.0.0.4/29']);
  assert.deepEqual(first.network.gateways, ['10.0.0.1']);
  assert.throws(() => placed([nic('a', '10.0.0.2'), nic('b', '10.0.0.2')], lan), /given twice/);
});

test('behind NAT a guest asks by DHCP, and a node that is not connected has no such NIC', () => {
  const lan = pool('10.0.0.0/29', { connections: { node1: { mode: 'nat' } } });
  assert.equal(placed([nic('a', 'pool')], lan)[0]?.network, null);
  assert.throws(() => placed([nic('a', 'pool')], { ...lan, connections: {} }), {
    code: 'CONFLICT',
    message: "network 'lan' is not connected on node node1",
  });
});

test('a NIC keeps what it has, and a full pool says so', () => {
  const lan = pool('10.0.0.0/30', { reserved: ['10.0.0.1'] });
  const own = nic('a', '10.0.0.1');
  assert.deepEqual(placed([own], lan, ['10.0.0.1'], [own]), [own]);
  assert.throws(() => placed([nic('b', 'pool')], lan, ['10.0.0.2']), { code: 'NO_FREE_ADDRESS' });
});
