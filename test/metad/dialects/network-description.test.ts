import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { networkConfig, networkData } from '../../../metad/dialects/network-description.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const CHANNEL_MAC = '52:54:00:e1:a3:45';

function configFor(document: string | null): unknown {
  const networkConfigText = document === null ? null : Buffer.from(document).toString('base64');
  const view = parseView(exampleView({ networkConfig: networkConfigText }));
  return parse(networkConfig(view).toString());
}

test('all NICs are matched by MAC and asked to use DHCP', () => {
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

test('an operator’s version 1 document gets it as well', () => {
  const value = configFor('version: 1\nconfig:\n- type: physical\n  name: eth0\n') as {
    config: { mac_address?: string; subnets?: unknown }[];
  };
  assert.equal(value.config.length, 2);
  assert.equal(value.config[1]?.mac_address, CHANNEL_MAC);
  assert.deepEqual(value.config[1]?.subnets, [{ type: 'dhcp4' }]);
});

test('a document that names the NIC, or that we do not understand, stays as it is', () => {
  for (const text of [
    `version: 2\nethernets: {a: {match: {macaddress: "${CHANNEL_MAC.toUpperCase()}"}}} # mine\n`,
    'version: 3\n',
    ': : :\n',
    'version: 2\nethernets: [1]\n',
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
