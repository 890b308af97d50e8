import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nicNetwork } from '#shared/contract/static-network.ts';
import { renderEc2 } from '../../../metad/dialects/ec2.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

function textAt(path: string, view = exampleView()): string | undefined {
  const leaf = renderEc2(parseView(view)).get(path);
  return leaf?.kind === 'fixed' ? leaf.body.toString() : undefined;
}

test('the channel and every other NIC have EC2 metadata', () => {
  const base = 'meta-data/network/interfaces/macs';
  assert.equal(textAt(`${base}/aa:00:00:85:84:fd/device-number`), '0');
  assert.equal(textAt(`${base}/52:54:00:e1:a3:45/device-number`), '1');
  assert.ok(textAt(`${base}/52:54:00:e1:a3:45/vpc-id`));
  assert.equal(textAt(`${base}/52:54:00:e1:a3:45/local-ipv4s`), '169.254.0.1');
});

test('the channel is described even when the view lists no NIC', () => {
  const view = exampleView({ nics: [] });
  assert.equal(
    textAt('meta-data/network/interfaces/macs/52:54:00:e1:a3:45/mac', view),
    '52:54:00:e1:a3:45',
  );
});

test('the keys that Kairos and ec2metadata read exist', () => {
  for (const name of [
    'hostname',
    'local-ipv4',
    'placement/availability-zone',
    'instance-type',
    'instance-id',
    'local-hostname',
    'public-keys/0/openssh-key',
    'ami-id',
    'mac',
    'reservation-id',
  ]) {
    assert.ok(textAt(`meta-data/${name}`), name);
  }
});

test('unset user-data is served as an empty document', () => {
  assert.equal(textAt('user-data', exampleView({ userData: null })), '');
});

test('metadata keys that cannot be one path segment are left out', () => {
  const view = exampleView({ metadata: { role: 'x', 'a/b': 'y', '..': 'z', '': 'e' } });
  const paths = [...renderEc2(parseView(view)).keys()].filter((path) => path.includes('tags/'));
  assert.deepEqual(paths, ['meta-data/tags/instance/role']);
});

test('no leaf of meta-data has a line break', () => {
  const view = exampleView({ sshKeys: ['ssh-rsa AAAA x\n'] });
  for (const [path, leaf] of renderEc2(parseView(view))) {
    if (!path.startsWith('meta-data/')) continue;
    assert.ok(leaf.kind === 'fixed' && !leaf.body.includes('\n'), path);
  }
});

test('mac and local-ipv4 describe the same NIC', () => {
  assert.equal(textAt('meta-data/mac'), '52:54:00:e1:a3:45');
  assert.equal(textAt('meta-data/local-ipv4'), '169.254.0.1');
  const [nic, channel] = exampleView().nics;
  assert.ok(nic && channel);
  const view = exampleView({ nics: [{ ...nic, ip: '10.0.0.5' }, channel] });
  assert.equal(textAt('meta-data/mac', view), nic.mac);
  assert.equal(textAt('meta-data/local-ipv4', view), '10.0.0.5');
});

test('a NIC with static addresses has its first IPv4 address and that address’s subnet', () => {
  const [nic, channel] = exampleView().nics;
  assert.ok(nic && channel);
  const network = nicNetwork.parse({ addresses: ['10.0.0.5/20', '10.0.0.6/20', 'fd00::5/64'] });
  const view = exampleView({ nics: [{ ...nic, ip: '10.0.0.5', network }, channel] });
  const base = `meta-data/network/interfaces/macs/${nic.mac}`;
  assert.equal(textAt(`${base}/local-ipv4s`, view), '10.0.0.5');
  assert.equal(textAt(`${base}/subnet-ipv4-cidr-block`, view), '10.0.0.0/20');
});

test('a block device mapping has the operator’s name of a disk', () => {
  const disks = [{ sizeBytes: 1 }, { sizeBytes: 1, name: 'data' }, { sizeBytes: 1, name: 'a/b' }];
  const view = exampleView({ disks });
  assert.equal(textAt('meta-data/block-device-mapping/ebs1', view), '/dev/vdb');
  assert.equal(textAt('meta-data/block-device-mapping/data', view), '/dev/vdb');
  assert.equal(textAt('meta-data/block-device-mapping', view), undefined);
});
