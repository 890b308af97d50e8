import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { NicNetwork } from '#shared/contract/static-network.ts';
import {
  debianInterfaces,
  networkConfig,
  networkData,
} from '../../../metad/dialects/network-description.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const CHANNEL_MAC = '52:54:00:e1:a3:45';

function configFor(document: string | null): unknown {
  const networkConfigText = document === null ? null : Buffer.from(document).toString('base64');
  const view = parseView(exampleView({ networkConfig: networkConfigText }));
  return parse(networkConfig(view).toString());
}

test('all NICs are matched by MAC and use DHCP', () => {
  assert.deepEqual(configFor(null), {
    version: 2,
    ethernets: {
      eth0: { match: { macaddress: 'aa:00:00:85:84:fd' }, 'set-name': 'eth0', dhcp4: true },
      eth1: { match: { macaddress: CHANNEL_MAC }, 'set-name': 'eth1', dhcp4: true },
    },
  });
});

test('an operator’s version 2 document gets the channel’s NIC, also below `network`', () => {
  const channel = { match: { macaddress: CHANNEL_MAC }, dhcp4: true };
  assert.deepEqual(configFor('version: 2\nethernets:\n  lan:\n    dhcp6: true\n'), {
    version: 2,
    ethernets: { lan: { dhcp6: true }, gntcom: channel },
  });
  assert.deepEqual(configFor('network:\n  version: 2\n'), {
    network: { version: 2, ethernets: { gntcom: channel } },
  });
});

test('the channel’s entry sorts before all entries that match NICs by a pattern', () => {
  const channel = { match: { macaddress: CHANNEL_MAC }, dhcp4: true };
  const idBeside = (ids: readonly string[], match: object): string => {
    const others = Object.fromEntries(ids.map((id) => [id, { match, dhcp4: true }]));
    const document = JSON.stringify({ network: { version: 2, ethernets: others } });
    const { network } = configFor(document) as { network: { ethernets: Record<string, unknown> } };
    const [id = '', ...more] = Object.keys(network.ethernets).filter((key) => !ids.includes(key));
    assert.deepEqual([network.ethernets[id], more], [channel, []]);
    return id;
  };
  for (const ids of [['all-en'], ['zz', 'a', 'h'], ['00-all'], ['0'], ['!all'], ['!!!', '!!a']])
    for (const match of [{ name: 'e*' }, { driver: 'virtio_net' }, {}]) {
      const id = idBeside(ids, match);
      const files = [id, ...ids].map((one) => `${one}.network`);
      assert.equal(files.toSorted()[0], `${id}.network`, ids.join());
    }
  assert.equal(idBeside(['lan'], { name: 'e*' }), 'gntcom');
  // netplan takes no such ID.
  assert.equal(idBeside(['\t'], { name: 'e*' }), 'gntcom');
  assert.equal(idBeside(['a'], { macaddress: 'aa:00:00:00:00:01' }), 'gntcom');
});

test('the channel’s entry sorts before entries whose pattern is an alias', () => {
  for (const entry of ['*b', '{<<: *b, dhcp6: true}', '{match: *m}']) {
    const value = configFor(
      `version: 2\nx: &b {match: &m {name: "e*"}}\nethernets:\n  a0: ${entry}\n`,
    ) as { ethernets: Record<string, unknown> };
    assert.deepEqual(Object.keys(value.ethernets).toSorted(), ['0gntcom', 'a0'], entry);
  }
});

test('an operator’s version 1 document gets the channel’s NIC', () => {
  const value = configFor('version: 1\nconfig:\n- type: physical\n  name: eth0\n') as {
    config: { mac_address?: string; subnets?: unknown }[];
  };
  assert.equal(value.config.length, 2);
  assert.equal(value.config[1]?.mac_address, CHANNEL_MAC);
  assert.deepEqual(value.config[1]?.subnets, [{ type: 'dhcp4' }]);
});

test('a document that merges a NIC from an anchor gets the channel’s NIC', () => {
  const value = configFor(
    'version: 1\ncards: &a {type: physical}\nconfig: [{<<: *a, name: eth0}]\n',
  );
  assert.equal((value as { config: { name?: string }[] }).config[1]?.name, 'eth1');
});

test('a document of aliases gets the channel’s NIC in the aliased list or map', () => {
  for (const text of [
    'cards: &n {version: 2, ethernets: {a: {dhcp4: true}}}\nnetwork: *n\n',
    'base: &b {version: 2}\nnetwork:\n  <<: *b\n  ethernets: {a: {dhcp4: true}}\n',
    'cards: &n {a: {dhcp4: true}}\nnetwork: {version: 2, ethernets: *n}\n',
  ]) {
    const { network } = configFor(text) as { network: { ethernets: Record<string, unknown> } };
    assert.deepEqual(network.ethernets, {
      ...{ a: { dhcp4: true } },
      gntcom: { match: { macaddress: CHANNEL_MAC }, dhcp4: true },
    });
  }
  const { config } = configFor(
    'cards: &c [{type: physical, name: eth0}]\nversion: 1\nconfig: *c\n',
  ) as { config: { name: string }[] };
  assert.deepEqual(
    config.map(({ name }) => name),
    ['eth0', 'eth1'],
  );
});

test('a document whose aliases expand too far is unchanged', () => {
  const cards = Array.from({ length: 60 }, (_, at) => `c${at}: {dhcp4: true}`).join(', ');
  const many = Array.from({ length: 60 }, (_, at) => `k${at}: *n`).join(', ');
  const text = `a: &n {${cards}}\nb: &v {version: 2}\nc: {${many}}\nnetwork: *v\n`;
  const view = parseView(exampleView({ networkConfig: Buffer.from(text).toString('base64') }));
  assert.equal(networkConfig(view).toString(), text);
});

test('a document that names the channel’s NIC, or is malformed, is unchanged', () => {
  for (const text of [
    `version: 2\nethernets: {a: {match: {macaddress: "${CHANNEL_MAC.toUpperCase()}"}}} # mine\n`,
    'version: 3\n',
    ': : :\n',
    'version: 2\nethernets: [1]\n',
    'version: 2\nethernets: !!set {a, b}\n',
    'version: 2\nethernets: *none\n',
    `version: 2\n${Array.from({ length: 2000 }, (_, at) => `k${at}: x\n`).join('')}`,
  ]) {
    const view = parseView(exampleView({ networkConfig: Buffer.from(text).toString('base64') }));
    assert.equal(networkConfig(view).toString(), text);
  }
});

test('OpenStack’s description has every NIC and no route', () => {
  const value = networkData(parseView(exampleView())) as {
    links: { ethernet_mac_address: string }[];
    networks: object[];
  };
  assert.deepEqual(
    value.links.map((link) => link.ethernet_mac_address),
    ['aa:00:00:85:84:fd', CHANNEL_MAC],
  );
  assert.doesNotMatch(JSON.stringify(value), /route|gateway/);
});

const STATIC: NicNetwork = {
  addresses: ['10.0.0.5/24', '10.0.0.6/24', '2001:db8::5/64'],
  gateways: ['10.0.0.1', '2001:db8::1'],
  nameservers: ['9.9.9.9'],
  search: ['example.org'],
  routes: [{ to: '10.9.0.0/16', via: '10.0.0.9' }],
  mtu: 1400,
};

function staticView(network: NicNetwork = STATIC) {
  const { nics } = exampleView();
  return parseView(
    exampleView({ nics: nics.map((nic) => (nic.communication ? nic : { ...nic, network })) }),
  );
}

test('static addresses are a version 1 document, the channel last', () => {
  const { version, config } = parse(networkConfig(staticView()).toString()) as {
    version: number;
    config: { name: string; mac_address: string; mtu?: number; subnets: object[] }[];
  };
  assert.equal(version, 1);
  assert.deepEqual(
    config.map(({ name, mac_address, mtu }) => [name, mac_address, mtu]),
    [
      ['eth0', 'aa:00:00:85:84:fd', 1400],
      ['eth1', CHANNEL_MAC, undefined],
    ],
  );
  assert.deepEqual(config[0]?.subnets, [
    {
      type: 'static',
      address: '10.0.0.5/24',
      gateway: '10.0.0.1',
      routes: [{ network: '10.9.0.0', netmask: '255.255.0.0', gateway: '10.0.0.9' }],
      dns_nameservers: ['9.9.9.9'],
      dns_search: ['example.org'],
    },
    { type: 'static', address: '10.0.0.6/24' },
    { type: 'static6', address: '2001:db8::5/64', gateway: '2001:db8::1' },
  ]);
  assert.deepEqual(config[1]?.subnets, [{ type: 'dhcp4' }]);
});

test('a gateway outside of a /32 gets on-link, and a link-local gateway does not', () => {
  const onLink: NicNetwork = {
    ...{ nameservers: ['9.9.9.9'], search: [], mtu: null, routes: [] },
    addresses: ['203.0.113.5/32', '2001:db8::5/64'],
    gateways: ['198.51.100.1', 'fe80::1'],
  };
  const { version, ethernets } = parse(networkConfig(staticView(onLink)).toString()) as {
    version: number;
    ethernets: { eth0: object; eth1: object };
  };
  assert.equal(version, 2);
  assert.partialDeepStrictEqual(ethernets.eth0, {
    addresses: onLink.addresses,
    routes: [
      { to: '0.0.0.0/0', via: '198.51.100.1', 'on-link': true },
      { to: '::/0', via: 'fe80::1' },
    ],
    nameservers: { addresses: ['9.9.9.9'] },
  });
  assert.partialDeepStrictEqual(ethernets.eth1, { dhcp4: true });
  const linkLocal = { ...onLink, addresses: ['2001:db8::5/64'], gateways: ['fe80::1'] };
  assert.equal(
    (parse(networkConfig(staticView(linkLocal)).toString()) as { version: number }).version,
    1,
  );
});

test('an MTU alone goes with DHCP', () => {
  const value = parse(
    networkConfig(
      staticView({
        ...STATIC,
        addresses: [],
        gateways: [],
        nameservers: [],
        search: [],
        routes: [],
      }),
    ).toString(),
  ) as { version: number; ethernets: { eth0: object } };
  assert.deepEqual(value.ethernets.eth0, {
    match: { macaddress: 'aa:00:00:85:84:fd' },
    'set-name': 'eth0',
    mtu: 1400,
    dhcp4: true,
  });
});

test('OpenStack’s description has a network for each address', () => {
  const { links, networks, services } = networkData(staticView()) as {
    links: { mtu?: number }[];
    networks: { type: string; ip_address?: string; netmask?: string; routes?: object[] }[];
    services: object[];
  };
  assert.equal(links[0]?.mtu, 1400);
  assert.deepEqual(
    networks.map(({ type, ip_address, netmask }) => [type, ip_address, netmask]),
    [
      ['ipv4', '10.0.0.5', '255.255.255.0'],
      ['ipv4', '10.0.0.6', '255.255.255.0'],
      ['ipv6', '2001:db8::5', 'ffff:ffff:ffff:ffff:0:0:0:0'],
      ['ipv4_dhcp', undefined, undefined],
    ],
  );
  assert.deepEqual(networks[0]?.routes, [
    { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '10.0.0.1' },
    { network: '10.9.0.0', netmask: '255.255.0.0', gateway: '10.0.0.9' },
  ]);
  assert.deepEqual(services, [{ type: 'dns', address: '9.9.9.9' }]);
});

test('Debian’s interfaces file has a stanza for each address', () => {
  assert.equal(
    debianInterfaces(staticView()),
    `auto lo
iface lo inet loopback

auto eth0
iface eth0 inet static
    address 10.0.0.5/24
    hwaddress ether aa:00:00:85:84:fd
    mtu 1400
    dns-nameservers 9.9.9.9
    dns-search example.org
    gateway 10.0.0.1
    post-up ip route add 10.9.0.0/16 via 10.0.0.9 dev eth0
iface eth0 inet static
    address 10.0.0.6/24
iface eth0 inet6 static
    address 2001:db8::5/64
    gateway 2001:db8::1

auto eth1
iface eth1 inet dhcp
    hwaddress ether ${CHANNEL_MAC}
`,
  );
});

test('the channel gets a free name in an operator’s version 1 document', () => {
  const value = configFor(
    'version: 1\nconfig:\n- {type: physical, name: eth0}\n- {type: physical, name: eth1}\n- nonsense\n',
  ) as { config: { name?: string; mac_address?: string }[] };
  const channel = value.config.find((entry) => entry.mac_address === CHANNEL_MAC);
  assert.equal(channel?.name, 'eth2');
});
