import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nicNetwork, readNicNetwork, subnetOf } from '#shared/contract/static-network.ts';

test('the words of --net become addresses, gateways, servers and routes', () => {
  const { ip, network } = readNicNetwork({
    ip: '10.0.0.5/24;2001:db8::5/64',
    gateway: '10.0.0.1,2001:db8::1',
    dns: '9.9.9.9',
    search: 'example.org',
    routes: '10.9.0.0/16@10.0.0.9',
    mtu: '1400',
  });
  assert.equal(ip, '10.0.0.5');
  assert.deepEqual(nicNetwork.parse(network), {
    addresses: ['10.0.0.5/24', '2001:db8::5/64'],
    gateways: ['10.0.0.1', '2001:db8::1'],
    nameservers: ['9.9.9.9'],
    search: ['example.org'],
    routes: [{ to: '10.9.0.0/16', via: '10.0.0.9' }],
    mtu: 1400,
  });
});

test('an address without a prefix is a remark, as in Ganeti, and MTU goes with DHCP', () => {
  assert.deepEqual(readNicNetwork({ ip: '10.0.0.5' }), { ip: '10.0.0.5' });
  assert.deepEqual(readNicNetwork({}), { ip: undefined });
  assert.ok(nicNetwork.safeParse(readNicNetwork({ mtu: 9000 }).network).success);
});

for (const [name, texts, message] of [
  ['a prefix that is too long', { ip: '10.0.0.5/33' }, /ADDRESS\/PREFIX/],
  ['no prefix beside a gateway', { ip: '10.0.0.5', gateway: '10.0.0.1' }, /ADDRESS\/PREFIX/],
  ['a gateway alone', { gateway: '10.0.0.1' }, /need ip=ADDRESS\/PREFIX/],
  ['a gateway elsewhere', { ip: '10.0.0.5/24', gateway: '10.1.0.1' }, /10\.1\.0\.1 is not in/],
  ['a gateway of the host', { ip: '10.0.0.5/32', gateway: '127.0.0.1' }, /is not in/],
  ['an IPv6 gateway alone', { ip: '10.0.0.5/24', gateway: 'fe80::1' }, /is not in/],
  [
    'two gateways',
    { ip: '10.0.0.5/24', gateway: '10.0.0.1;10.0.0.2' },
    /more than one default gateway/,
  ],
  ['the channel’s network', { ip: '169.254.1.1/16' }, /cannot be the address of a NIC/],
  ['a multicast address', { ip: 'ff02::1/64' }, /cannot be the address of a NIC/],
  ['no address', { ip: 'web1/24' }, /ADDRESS\/PREFIX/],
  ['a route without a gateway', { ip: '10.0.0.5/24', routes: '10.9.0.0/16' }, /IPv4 or IPv6/],
  [
    'a route by the other family',
    { ip: '10.0.0.5/24;2001:db8::5/64', routes: '10.9.0.0/16@2001:db8::1' },
    /are of different address families/,
  ],
  ['an MTU that is no number', { mtu: 'big' }, /expected number|NaN/],
  ['a domain with a line break', { ip: '10.0.0.5/24', search: 'a\nb' }, /expected a domain name/],
] as const) {
  test(`${name} is refused`, () => {
    const result = nicNetwork.safeParse(readNicNetwork(texts).network);
    assert.match(result.error?.message ?? 'accepted', message);
  });
}

for (const [name, texts] of [
  ['a gateway outside of a /32', { ip: '203.0.113.5/32', gateway: '198.51.100.1' }],
  ['a gateway outside of a /128', { ip: '2001:db8::5/128', gateway: '2001:db8:1::1' }],
  ['a link-local IPv6 gateway', { ip: '2001:db8::5/64', gateway: 'fe80::1' }],
] as const) {
  test(`${name} is accepted`, () => {
    assert.ok(nicNetwork.safeParse(readNicNetwork(texts).network).success);
  });
}

test('the subnet of an address', () => {
  assert.equal(subnetOf('10.77.200.9/20'), '10.77.192.0/20');
  assert.equal(subnetOf('10.0.0.5/32'), '10.0.0.5/32');
});
