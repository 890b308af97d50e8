import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { debianTree } from '../lab/cached-tree.ts';
import { ROLE } from '../lab/cloud-lab.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { GuestTree } from './support/guest-tree.ts';
import { exampleView } from './support/view-fixture.ts';

/**
 * Debian's unmodified inventory clients. Each reads the listing of versions and the trees below it
 * in its own way.
 */
const PACKAGES = ['facter', 'ohai', 'python3-boto'];
const LEFT_OUT = ['man', 'doc', 'locale'].map((name) => `/usr/share/${name}/*`);
const USER_DATA = '#!/bin/sh\necho hello\n';
/** Without a node daemon there are no credentials of the role. */
const view = exampleView({
  userData: Buffer.from(USER_DATA).toString('base64'),
  identity: { aws: { role: ROLE } },
});
const MACS = view.nics.map(({ mac }) => mac).sort();
const BOTO = `
import json
from boto.utils import get_instance_identity, get_instance_metadata, get_instance_userdata
metadata = get_instance_metadata(timeout=5, num_retries=1)
print(json.dumps({
  'metadata': json.loads(json.dumps(metadata)),
  'identity': get_instance_identity(timeout=5, num_retries=1)['document'],
  'userdata': get_instance_userdata(timeout=5, num_retries=1),
}))`;

let root: string;
let lab: ChannelLab;
let guest: Guest;

before(
  async () => {
    root = await debianTree('inventory-clients', PACKAGES, LEFT_OUT);
    lab = await ChannelLab.create();
    guest = await lab.addGuest(view.channel);
  },
  { timeout: 1_500_000 },
);
after(async () => {
  await lab[Symbol.asyncDispose]();
});

/** Runs a client in a guest that looks like KVM. Returns its output as JSON. */
async function run(command: string): Promise<Record<string, unknown>> {
  await using tree = await GuestTree.create(root, guest.namespace);
  for (const name of ['ec2', 'openstack'])
    await tree.write(`etc/chef/ohai/hints/${name}.json`, '{}');
  await tree.write('usr/sbin/virt-what', '#!/bin/sh\necho kvm\n');
  await tree.write('read-tree.py', BOTO);
  const mounts = ['proc /proc', 'sysfs /sys', 'tmpfs /run'].map((mount) => {
    const [kind = '', path = ''] = mount.split(' ');
    return `mount -t ${kind} ${kind} ${path}`;
  });
  return JSON.parse(await tree.run([...mounts, command, ''].join('\n'))) as Record<string, unknown>;
}

for (const [revision, metadataToken] of [
  [1, 'optional'],
  [2, 'required'],
] as const) {
  test(`ohai reads the whole EC2 tree and the user data, a token being ${metadataToken}`, async () => {
    assert.equal((await lab.put({ ...view, revision, metadataToken })).status, 204);
    const found = await run('ohai ec2 --log_level fatal');
    assert.equal(found['instance_id'], view.instanceId);
    assert.equal(found['local_hostname'], view.name);
    assert.equal(found['availability_zone'], view.primaryNode);
    assert.equal(found['userdata'], USER_DATA);
    assert.equal(found['public_keys_0_openssh_key'], view.sshKeys[0]);
    assert.deepEqual(Object.keys(found['network_interfaces_macs'] ?? {}).sort(), MACS);
  });

  test(`facter reads the whole EC2 tree and the user data, a token being ${metadataToken}`, async () => {
    assert.equal((await lab.put({ ...view, revision, metadataToken })).status, 204);
    const { ec2_metadata: metadata, ec2_userdata: userData } = await run(
      'facter --json ec2_metadata ec2_userdata',
    );
    assert.equal(userData, USER_DATA.trim());
    const found = metadata as Record<string, Record<string, Record<string, object>>>;
    assert.equal(found['instance-id'], view.instanceId);
    assert.equal(found['public-keys']?.['0']?.['openssh-key'], view.sshKeys[0]);
    assert.deepEqual(Object.keys(found['network']?.['interfaces']?.['macs'] ?? {}).sort(), MACS);
  });
}

test('ohai reads the EC2 tree of an OpenStack guest, and boto reads it key by key', async () => {
  assert.equal((await lab.put({ ...view, revision: 3 })).status, 204);
  const openstack = await run('ohai openstack --log_level fatal');
  assert.equal(openstack['instance_id'], view.instanceId);
  const { metadata, identity, userdata } = await run('python3 /read-tree.py');
  const found = metadata as Record<string, Record<string, Record<string, object>>>;
  assert.equal(found['instance-id'], view.instanceId);
  assert.equal(found['public-keys']?.['key-0'], view.sshKeys[0]);
  assert.deepEqual(Object.keys(found['network']?.['interfaces']?.['macs'] ?? {}).sort(), MACS);
  assert.equal((identity as Record<string, unknown>)['instanceId'], view.instanceId);
  assert.equal(userdata, USER_DATA);
});
