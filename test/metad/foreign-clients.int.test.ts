import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { renderEc2 } from '../../metad/dialects/ec2.ts';
import { parseView } from '../../metad/view/served-view.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { cloudInitTree } from './support/cloud-init-guest.ts';
import { AWS_SDK_CRAWL, BOTOCORE, foreignClients, runPython } from './support/foreign-clients.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const SERVICE = 'http://169.254.169.254';
const USER_DATA = Buffer.from([0x23, 0x21, 0x0a, 0x00, 0xff, 0xfe, 0x0d, 0x0a]);
const view = exampleView({ userData: USER_DATA.toString('base64') });
let clients: string;
let cloudInit: string;
let lab: ChannelLab;
let guest: Guest;

before(
  async () => {
    clients = await foreignClients();
    cloudInit = await cloudInitTree();
    lab = await ChannelLab.create();
    guest = await lab.addGuest(view.channel);
    assert.equal((await lab.put(view)).status, 204);
  },
  { timeout: 1_500_000 },
);
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function python(tree: string, program: string, ...args: string[]): Promise<unknown> {
  return await runPython(guest, { clients, tree }, program, ...args);
}

test('cloud-guest-utils’ ec2metadata prints the values of the view', async () => {
  const output = await guest.run('/usr/bin/python3', join(clients, 'usr/bin/ec2metadata'));
  const lines = new Map(
    output.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]),
  );
  assert.equal(lines.get('instance-id'), view.instanceId);
  assert.equal(lines.get('local-hostname'), view.name);
  assert.equal(lines.get('local-ipv4'), view.channel.ip);
  assert.equal(lines.get('availability-zone'), view.primaryNode);
  assert.match(output, new RegExp(view.sshKeys[0]?.replace('+', '\\+') ?? '-'));
});

test('amazon-ec2-utils’ ec2-metadata prints the values of the view', async () => {
  const output = await guest.run('bash', join(clients, 'usr/bin/ec2-metadata'));
  for (const line of [
    `instance-id: ${view.instanceId}`,
    `local-hostname: ${view.name}`,
    `local-ipv4: ${view.channel.ip}`,
    `placement: ${view.primaryNode}`,
    '\t ami: /dev/vda',
    'keyname:key-0',
    view.sshKeys[0] ?? '',
    '\t role: frontend',
  ]) {
    assert.ok(output.split('\n').includes(line), `${line} is not in ${output}`);
  }
});

test('AWS’ JavaScript client reads the whole EC2 tree where session tokens are required', async () => {
  assert.equal((await lab.put({ ...view, revision: 2, metadataToken: 'required' })).status, 204);
  const found = JSON.parse(await guest.run(process.execPath, AWS_SDK_CRAWL)) as Record<
    string,
    string
  >;
  const expected = [...renderEc2(parseView(view))].map(([path, leaf]) => {
    assert.equal(leaf.kind, 'fixed');
    return [path, leaf.kind === 'fixed' ? leaf.body.toString('utf8') : ''] as const;
  });
  assert.deepEqual(found, Object.fromEntries(expected));
  assert.equal((await lab.put({ ...view, revision: 3 })).status, 204);
});

test('botocore gets a session token, the region, the instance id and no credentials', async () => {
  assert.deepEqual(await python(clients, BOTOCORE), {
    hasToken: true,
    id: view.instanceId,
    // The part of an availability zone before its last letter.
    region: view.primaryNode.slice(0, -1),
    credentials: {},
  });
});

test('cloud-init’s readers return the values of the view in each dialect, and user data to the byte', async () => {
  const program = `
import json, logging
from cloudinit.net import eni
from cloudinit.sources.helpers import ec2, openstack
from cloudinit.util import read_seeded
base = '${SERVICE}'
tree = ec2.get_instance_metadata('2009-04-04', base)
stack = openstack.MetadataReader(base).read_v2()
seed = read_seeded(base + '/nocloud/')
print(json.dumps({
  'ec2': [tree['instance-id'], tree['local-hostname'], tree['public-keys']],
  'ec2UserData': ec2.get_instance_userdata('2009-04-04', base).hex(),
  'openstack': [stack['metadata']['uuid'], stack['metadata']['hostname'], stack['metadata']['meta']],
  'openstackUserData': stack['userdata'].hex(),
  'contentMacs': [nic.get('mac_address')
    for nic in eni.convert_eni_data(stack['network_config'])['config']],
  'macs': sorted(link['ethernet_mac_address'] for link in stack['networkdata']['links']),
  'nocloud': [seed[0]['instance-id'], seed[0]['local-hostname']],
  'nocloudUserData': seed[1].hex(),
}))`;
  const key = view.sshKeys[0];
  const userData = USER_DATA.toString('hex');
  assert.deepEqual(await python(cloudInit, program), {
    ec2: [view.instanceId, view.name, { 'key-0': key }],
    ec2UserData: userData,
    openstack: [view.instanceId, view.name, view.metadata],
    openstackUserData: userData,
    contentMacs: ['aa:00:00:85:84:fd', '52:54:00:e1:a3:45', null],
    macs: ['52:54:00:e1:a3:45', 'aa:00:00:85:84:fd'],
    nocloud: [view.instanceId, view.name],
    nocloudUserData: userData,
  });
});

test('Ganeti’s client pushes an instance, and its guest reads OS parameters of every visibility', async () => {
  const requests = JSON.parse(
    await readFile(join(import.meta.dirname, '../../fixtures/metad/ganeti-requests.json'), 'utf8'),
  ) as Record<string, { args: [{ name: string }] }>;
  const instance = requests['add, communication on, one parameter of each visibility']?.args[0];
  assert.ok(instance);
  await using ganeti = await ChannelLab.create((directory) => [
    ...['--ganeti', '--ganeti-socket', join(directory, 'socket/ganeti-metad')],
  ]);
  const link = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
  const ganetiGuest = await ganeti.addGuest(link);
  const program = `
import json, sys
from ganeti import metad
metad.Client._GetAddress = lambda self: sys.argv[1]
client = metad.Client()
print(json.dumps([client.Echo('hello'), client.UpdateConfig(json.loads(sys.argv[2]))]))`;
  const socket = join(ganeti.directory, 'socket/ganeti-metad');
  assert.deepEqual(await python(clients, program, socket, JSON.stringify(instance)), ['hello', []]);
  const ask = async (path: string): Promise<unknown> => {
    const answer = await askFromGuest(ganetiGuest.namespace, `/ganeti/latest/${path}`);
    assert.equal(answer.status, 200, path);
    return JSON.parse(answer.body.toString());
  };
  assert.deepEqual(await ask('os/parameters.json'), {
    dhcp: ['yes', 'public'],
    'os-package': ['/srv/packages/pkg.tgz', 'public'],
    hostkey: ['KEY123', 'private'],
    rootpw: ['S3CRET', 'secret'],
  });
  assert.equal(((await ask('meta_data.json')) as { name: string }).name, instance.name);
});
