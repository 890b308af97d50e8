import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

/** What clients of other people's making ask for, in their order and with their headers. */

const view = exampleView();
let lab: ChannelLab;
let guest: Guest;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
  await lab.put(view);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

type Headers = Record<string, string>;

async function get(path: string, headers: Headers = {}): Promise<Answer> {
  return await askFromGuest(guest.namespace, path, {
    headers: { accept: '*/*', 'accept-encoding': 'gzip, deflate', ...headers },
  });
}

async function text(path: string, headers: Headers = {}): Promise<string> {
  const answer = await get(path, headers);
  assert.equal(answer.status, 200, path);
  return answer.body.toString();
}

type Tree = { [name: string]: Tree | string };

/** cloud-init's crawl (sources/helpers/ec2.py): folders first, then leaves; `index=name` lines are SSH keys. */
async function crawl(base: string, headers: Headers): Promise<Tree> {
  const lines = (await text(base, headers)).split('\n').filter((line) => line !== '');
  const folders = lines.filter((line) => line.endsWith('/'));
  const tree: Tree = {};
  for (const folder of folders.filter((name) => name !== 'security-credentials/')) {
    tree[folder.slice(0, -1)] = await crawl(base + folder, headers);
  }
  for (const line of lines.filter((name) => !name.endsWith('/'))) {
    const key = /^(\d+)=(.*)$/.exec(line);
    const path = key ? `${key[1]}/openssh-key` : line;
    tree[key?.[2] ?? line] = await text(base + path, headers);
  }
  return tree;
}

const CLOUD_INIT = { 'user-agent': 'Cloud-Init/22.4.2' };

test('cloud-init’s EC2 datasource with a session token reads the whole tree', async () => {
  const required = { ...view, revision: 2, metadataToken: 'required' as const };
  await lab.put(required);
  const refused = await get('/2021-03-23/meta-data/instance-id', CLOUD_INIT);
  assert.equal(refused.status, 401);
  const token = await askFromGuest(guest.namespace, '/latest/api/token', {
    method: 'PUT',
    headers: { ...CLOUD_INIT, 'x-aws-ec2-metadata-token-ttl-seconds': '21600' },
  });
  assert.equal(token.status, 200);
  const headers = { ...CLOUD_INIT, 'x-aws-ec2-metadata-token': token.body.toString() };
  assert.equal(await text('/2021-03-23/meta-data/instance-id', headers), view.instanceId);
  await text('/2021-03-23/user-data', headers);
  const tree = await crawl('/2021-03-23/meta-data/', headers);
  const macs = (tree.network as { interfaces: { macs: Tree } }).interfaces.macs;
  assert.deepEqual(Object.keys(macs).sort(), ['52:54:00:e1:a3:45', 'aa:00:00:85:84:fd']);
  assert.deepEqual(tree['public-keys'], { 'key-0': view.sshKeys[0] });
  for (const name of (await text('/2021-03-23/dynamic/instance-identity', headers)).split('\n')) {
    await text(`/2021-03-23/dynamic/instance-identity/${name}`, headers);
  }
  await lab.put({ ...view, revision: 3 });
});

test('a token is refused with a bad TTL, through a proxy, and where it is not made', async () => {
  const put = async (path: string, headers: Headers): Promise<number> =>
    (await askFromGuest(guest.namespace, path, { method: 'PUT', headers })).status;
  const ttl = (value: string): Headers => ({ 'x-aws-ec2-metadata-token-ttl-seconds': value });
  assert.equal(await put('/latest/api/token', {}), 400);
  for (const value of ['0', '21601', 'x', '']) {
    assert.equal(await put('/latest/api/token', ttl(value)), 400, value);
  }
  assert.equal(await put('/latest/api/token', { ...ttl('60'), 'x-forwarded-for': '1.2.3.4' }), 403);
  assert.equal(await put('/latest/user-data', ttl('60')), 405);
  assert.equal((await get('/latest/api/token')).status, 405);
});

test('cloud-init’s EC2 datasource elsewhere reads the tree without a token', async () => {
  const headers = { 'user-agent': 'python-requests/2.28.1' };
  assert.equal(await text('/2009-04-04/meta-data/instance-id', CLOUD_INIT), view.instanceId);
  await text('/2009-04-04/user-data', CLOUD_INIT);
  const tree = await crawl('/2009-04-04/meta-data/', headers);
  assert.equal(tree['instance-id'], view.instanceId);
});

test('cloud-init’s OpenStack datasource picks the newest version and finds every file', async () => {
  const known = [
    '2012-08-10',
    '2013-04-04',
    '2013-10-17',
    '2015-10-15',
    '2016-06-30',
    '2016-10-06',
    '2017-02-22',
    '2018-08-27',
  ];
  const versions = (await text('/openstack', CLOUD_INIT)).split('\n').map((line) => line.trim());
  const version = known.filter((candidate) => versions.includes(candidate)).at(-1);
  assert.equal(version, '2018-08-27');
  for (const name of [
    'meta_data.json',
    'vendor_data.json',
    'vendor_data2.json',
    'network_data.json',
  ]) {
    JSON.parse(await text(`/openstack/${version}/${name}`, CLOUD_INIT));
  }
  await text(`/openstack/${version}/user_data`, CLOUD_INIT);
  await crawl('/latest/meta-data/', {});
});

test('cloud-init’s NoCloud datasource gets 200 for all of its files', async () => {
  for (const name of ['network-config', 'meta-data', 'user-data', 'vendor-data']) {
    await text(`/nocloud/${name}`, CLOUD_INIT);
  }
});

test('Kairos finds its host name and keys in the EC2 tree, and nothing that misleads it', async () => {
  for (const name of [
    'hostname',
    'local-ipv4',
    'placement/availability-zone',
    'instance-type',
    'instance-id',
    'local-hostname',
    'public-keys/0/openssh-key',
  ]) {
    assert.notEqual(await text(`/latest/meta-data/${name}`), '', name);
  }
  await text('/latest/user-data');
  for (const path of ['/v1/', '/v1.json', '/metadata/v1/', '/metadata/instance/compute/vmId']) {
    assert.equal((await get(path)).status, 404, path);
  }
});

test('ec2metadata and botocore find leaves with a trailing slash, and folders without one', async () => {
  assert.equal(await text('/latest/meta-data/placement/availability-zone/'), view.primaryNode);
  assert.equal(await text('/2009-04-04/meta-data/public-keys'), '0=key-0');
  assert.equal(await text('/latest/meta-data/public-keys/0'), 'openssh-key');
});

test('OpenStack’s password is taken once', async () => {
  const path = '/openstack/latest/password';
  assert.equal(await text(path), '');
  const post = async (body: string): Promise<number> =>
    (await askFromGuest(guest.namespace, path, { method: 'POST', body })).status;
  assert.equal(await post('x'.repeat(1021)), 400);
  assert.equal(await post('encrypted'), 200);
  assert.equal(await post('other'), 409);
  assert.equal(await text(path), 'encrypted');
});

test('a POST of another method to a leaf names what is allowed', async () => {
  const answer = await askFromGuest(guest.namespace, '/openstack/latest/password', {
    method: 'PUT',
  });
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.allow, 'GET, HEAD, POST');
});

test('HEAD has the headers of GET and no body, everywhere', async () => {
  for (const path of [
    '/',
    '/ganeti',
    '/latest/user-data',
    '/nocloud/meta-data',
    '/openstack/latest/',
  ]) {
    const headed = await askFromGuest(guest.namespace, path, { method: 'HEAD' });
    const got = await get(path);
    assert.equal(headed.status, 200);
    assert.equal(headed.headers.etag, got.headers.etag);
    assert.equal(headed.headers['content-length'], String(got.body.length));
    assert.equal(headed.body.length, 0);
  }
});
