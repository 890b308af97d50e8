import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { networkConfig, networkData } from '../../metad/dialects/network-description.ts';
import { parseView } from '../../metad/view/served-view.ts';
import { cloudInitTree } from './support/cloud-init-guest.ts';
import { exampleView } from './support/view-fixture.ts';

/** A stock cloud-init renders the dialects' static addresses for each distribution. */

const NETWORK = {
  addresses: ['10.0.0.5/24', '2001:db8::5/64'],
  gateways: ['10.0.0.1', '2001:db8::1'],
  nameservers: ['9.9.9.9'],
  search: [],
  routes: [{ to: '10.9.0.0/16', via: '10.0.0.9' }],
  mtu: 1400,
};
const example = exampleView();
const view = parseView({
  ...example,
  nics: example.nics.map((nic) => (nic.communication ? nic : { ...nic, network: NETWORK })),
});
let tree = '';

before(
  async () => {
    tree = await cloudInitTree();
  },
  { timeout: 1_200_000 },
);

/** @returns the file that `cloud-init devel net-convert` writes at the path */
async function render(
  document: string,
  kind: 'yaml' | 'network_data.json',
  [renderer, distribution, path]: readonly [string, string, string],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-net-convert-'));
  try {
    await writeFile(join(folder, 'in'), document);
    // The tree is shared: the script writes only to a private /tmp in its own mount namespace.
    const script = [
      'mount --bind "$1" "$2/tmp"',
      'macs=$(for mac in $3; do echo "-m eth$((n = ${n:--1} + 1)),$mac"; done)',
      'chroot "$2" cloud-init devel net-convert -p /tmp/in -k "$4" -D "$5" -O "$6" -d /tmp/out $macs',
    ].join('\n');
    const macs = ['aa:00:00:85:84:fd', view.channel.mac].join(' ');
    await run('unshare', [
      ...['-m', 'sh', '-ec', script, 'sh'],
      ...[folder, tree, macs, kind, distribution, renderer],
    ]);
    return await readFile(join(folder, 'out', path), 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}

const ENI = ['eni', 'debian', 'etc/network/interfaces.d/50-cloud-init'] as const;
const NETPLAN = ['netplan', 'ubuntu', 'etc/netplan/50-cloud-init.yaml'] as const;
const SYSCONFIG = ['sysconfig', 'rhel', 'etc/sysconfig/network-scripts/ifcfg-eth0'] as const;

for (const [dialect, kind, document] of [
  ['NoCloud', 'yaml', () => networkConfig(view).toString()],
  ['OpenStack', 'network_data.json', () => JSON.stringify(networkData(view))],
] as const) {
  test(`${dialect}: netplan gets addresses, both gateways, the route and the MTU`, async () => {
    const text = await render(document(), kind, NETPLAN);
    for (const part of ['10.0.0.5/24', '2001:db8::5/64', '9.9.9.9', 'mtu: 1400', '10.9.0.0/16'])
      assert.ok(text.includes(part), `${part} in ${text}`);
    assert.match(text, /gateway4: 10\.0\.0\.1|to: 0\.0\.0\.0\/0\s+via: 10\.0\.0\.1/);
    assert.match(text, /gateway6: 2001:db8::1|to: ::\/0\s+via: 2001:db8::1/);
    assert.match(text, /eth1:\s+dhcp4: true/);
  });

  test(`${dialect}: ifupdown gets static stanzas, and the channel asks by DHCP`, async () => {
    const text = await render(document(), kind, ENI);
    assert.match(text, /iface eth0 inet static\n {4}address 10\.0\.0\.5\/24/);
    assert.match(text, /gateway 10\.0\.0\.1|add default gw 10\.0\.0\.1/);
    assert.match(text, /gateway 2001:db8::1|inet6 default gw 2001:db8::1/);
    assert.match(text, /iface eth1 inet dhcp/);
  });

  test(`${dialect}: Red Hat’s scripts get them as well`, async () => {
    const text = await render(document(), kind, SYSCONFIG);
    for (const line of ['BOOTPROTO=none', 'IPADDR=10.0.0.5', 'GATEWAY=10.0.0.1', 'MTU=1400'])
      assert.ok(text.includes(line), `${line} in ${text}`);
    assert.match(text, /IPV6_DEFAULTGW=2001:db8::1/);
  });
}
