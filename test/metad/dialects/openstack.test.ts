import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { Site } from '../../../metad/dialects/site.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const site = new Site(parseView(exampleView()), { password: '' });

function textAt(path: string): string | undefined {
  const address = resolveAddress(path);
  const resource = address && site.find(address);
  return resource?.kind === 'content' ? resource.body.toString() : undefined;
}

test('meta_data.json names a file of content/ in the format of Debian’s interfaces file', () => {
  const metaData = JSON.parse(textAt('openstack/latest/meta_data.json') ?? '') as {
    network_config: { content_path: string };
  };
  const path = metaData.network_config.content_path;
  assert.equal(
    textAt(`openstack${path}`),
    `auto lo
iface lo inet loopback

auto eth0
iface eth0 inet dhcp
    hwaddress ether aa:00:00:85:84:fd

auto eth1
iface eth1 inet dhcp
    hwaddress ether 52:54:00:e1:a3:45
`,
  );
});

test('content/ is outside of the versions, and has only the listed files', () => {
  assert.equal(textAt('openstack/content'), '0000');
  assert.equal(textAt('openstack')?.split('\n').at(-1), 'latest');
  assert.ok(textAt('openstack')?.split('\n').includes('content/'));
  for (const path of ['openstack/content/0001', 'openstack/latest/content', 'openstack/contents']) {
    assert.equal(textAt(path), undefined, path);
  }
});

test('devices have serial and name of each disk', () => {
  const disks = [
    { sizeBytes: 1, serial: 'disk0' },
    { sizeBytes: 1, serial: 'disk1', name: 'data' },
  ];
  const own = new Site(parseView(exampleView({ disks })), { password: '' });
  const address = resolveAddress('openstack/latest/meta_data.json');
  const resource = address && own.find(address);
  assert.ok(resource?.kind === 'content');
  const { devices } = JSON.parse(resource.body.toString()) as { devices: object[] };
  assert.deepEqual(devices, [
    { type: 'disk', bus: 'virtio', serial: 'disk0' },
    { type: 'disk', bus: 'virtio', serial: 'disk1', tags: ['data'] },
  ]);
});
