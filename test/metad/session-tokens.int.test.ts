import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { run } from '#shared/process/run.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView, installingView } from './support/view-fixture.ts';

/** Forged requests through a program in the guest, where tokens are required. */

const PATHS = [
  '/',
  '/ganeti/',
  '/ganeti/latest/',
  '/ganeti/latest/meta_data.json',
  '/ganeti/latest/os/parameters.json',
  '/ganeti/latest/read',
  '/openstack/latest/meta_data.json',
  '/openstack/content/0000',
  '/nocloud/user-data',
  '/latest/user-data',
  '/2009-04-04/meta-data/',
  '/nothing/at/all',
];
const neighbourView = exampleView({
  name: 'web2.example.com',
  uuid: '00000000-1f3d-49e9-b2b7-000000000002',
  nics: [],
  channel: { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: '169.254.0.2', hopLimit: 1 },
  metadataToken: 'required',
});

let lab: ChannelLab;
let guest: Guest;
let neighbour: Guest;
let revision = 1;
/** The number of the last event that was read. */
let heard = 0;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(exampleView().channel);
  neighbour = await lab.addGuest(neighbourView.channel);
  assert.equal((await lab.put(neighbourView)).status, 204);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function serve(view: InstanceView): Promise<void> {
  assert.equal((await lab.put({ ...view, revision: revision++ })).status, 204);
}

async function tokenOf({ namespace }: Guest): Promise<string> {
  const { status, body } = await askFromGuest(namespace, '/latest/api/token', {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
  });
  assert.equal(status, 200);
  return body.toString();
}

async function statusOf(path: string, method = 'GET', token?: string): Promise<number> {
  const headers = token === undefined ? {} : { 'x-aws-ec2-metadata-token': token };
  return (await askFromGuest(guest.namespace, path, { method, headers })).status;
}

test('every path of every dialect gets 401 without a token, for every method, with a hint how to get a token', async () => {
  await serve(exampleView({ metadataToken: 'required' }));
  for (const path of PATHS) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
      assert.equal(await statusOf(path, method), 401, `${method} ${path}`);
  }
  assert.equal(await statusOf('/ganeti/latest/write', 'POST'), 401);
  assert.equal(await statusOf('/openstack/latest/password', 'POST'), 401);
  assert.equal(await statusOf('/latest/api/token', 'GET'), 401);
  const { body } = await askFromGuest(guest.namespace, '/ganeti/latest/os/parameters.json');
  assert.match(body.toString(), /PUT \/latest\/api\/token .*ttl-seconds/);
  assert.doesNotMatch(body.toString(), /S3CRET/);
});

test('every path is served with a token where tokens are required', async () => {
  const token = await tokenOf(guest);
  for (const path of PATHS.slice(0, -1)) {
    const expected = path === '/ganeti/latest/read' ? 204 : 200;
    assert.equal(await statusOf(path, 'GET', token), expected, path);
  }
  assert.equal(await statusOf('/nothing/at/all', 'GET', token), 404);
  assert.equal(await statusOf('/ganeti/latest/write', 'POST', token), 204);
});

test('the token of another instance and a changed token get 401', async () => {
  assert.equal(await statusOf('/', 'GET', await tokenOf(neighbour)), 401);
  assert.equal(await statusOf('/', 'GET', `${await tokenOf(guest)}A`), 401);
});

test('a token is issued where the ec2 dialect is not served', async () => {
  await serve(exampleView({ metadataToken: 'required', dialects: ['ganeti'] }));
  const token = await tokenOf(guest);
  assert.equal(await statusOf('/ganeti/latest/meta_data.json'), 401);
  assert.equal(await statusOf('/ganeti/latest/meta_data.json', 'GET', token), 200);
  assert.equal(await statusOf('/latest/meta-data/', 'GET', token), 404);
});

/** The background script of the boothook. */
function tellingScript(vendorData: string): string {
  return /-c '\n([^']*)'/.exec(vendorData)?.[1] ?? assert.fail(vendorData);
}

for (const metadataToken of ['required', 'optional'] as const) {
  test(`a guest reports the stages and the end of its boot where tokens are ${metadataToken}`, async (t) => {
    const dialects = ['ganeti', 'nocloud'] as const;
    const view = exampleView({ dialects: [...dialects], metadataToken });
    await serve(view);
    const path = `/v1/instances/${view.uuid}/tree/nocloud/vendor-data`;
    const vendorData = (await lab.control('GET', path)).body.toString();
    const root = await mkdtemp(join(tmpdir(), 'gnt-told-'));
    t.after(() => rm(root, { recursive: true }));
    const write = async (name: string, v1: object): Promise<void> => {
      await writeFile(join(root, `.${name}`), JSON.stringify({ v1 }));
      await rename(join(root, `.${name}`), join(root, name));
    };
    const hear = async (
      isWanted: (event: MetadEvent['event']) => boolean,
    ): Promise<MetadEvent['event'][]> => {
      const said = await eventsUntil(lab, heard, (some) =>
        some.some(({ event }) => isWanted(event)),
      );
      heard = said.at(-1)?.sequence ?? 0;
      return said
        .map(({ event }) => event)
        .filter(({ type }) => type === 'ready' || type === 'boot-result');
    };
    const init = { errors: ['told'], start: 1, finished: 2 };
    await write('status.json', { init, 'modules-config': { start: 3 }, stage: 'modules-config' });
    const script = tellingScript(vendorData).replace('/run/cloud-init/', `${root}/`);
    const told = run('ip', ['netns', 'exec', guest.namespace, 'python3', '-I', '-S', '-c', script]);
    const soFar = { errors: ['told'], recoverableErrors: [] };
    const stages = [{ name: 'init-network', seconds: 1 }];
    assert.deepEqual(await hear(({ type }) => type === 'boot-result'), [
      { type: 'boot-result', result: { ...soFar, stage: 'modules-config', stages } },
    ]);
    await write('status.json', { init, stage: null });
    await write('result.json', {});
    await told;
    const end = await hear(({ type }) => type === 'boot-result');
    assert.deepEqual(
      end.map((event) => (event.type === 'boot-result' ? event.result.stage : event.type)),
      ['ready', null],
    );
  });
}

test('an appliance needs no token', async () => {
  await serve(installingView({ metadataToken: 'required' }));
  assert.equal(await statusOf('/ganeti/latest/install/plan.json'), 200);
});

test('a refusal in EC2’s tree has no body', async () => {
  for (const [metadataToken, path, status] of [
    ['required', '/latest/meta-data/', 401],
    ['required', '/1999-01-01/meta-data/', 401],
    ['optional', '/latest/meta-data/public-ipv4', 404],
    ['optional', '/1999-01-01/meta-data/', 404],
  ] as const) {
    await serve(exampleView({ metadataToken }));
    const answer = await askFromGuest(guest.namespace, path);
    assert.deepEqual([answer.status, answer.body.length], [status, 0], path);
  }
});
