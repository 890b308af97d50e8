import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LOST_SECRETS_HEADER } from '#shared/contract/metad-control.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

let lab: ChannelLab;
let guest: Guest;
const view = exampleView();

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest({ ...view.channel });
  const answer = await lab.put(view);
  assert.equal(answer.status, 204, answer.body.toString());
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

test('a guest reads its parameters over IPv4', async () => {
  const text = await guest.run(
    'curl',
    '-sS',
    '--max-time',
    '5',
    'http://169.254.169.254/ganeti/latest/os/parameters.json',
  );
  assert.deepEqual(JSON.parse(text), {
    dhcp: ['yes', 'public'],
    hostkey: ['KEY123', 'private'],
    rootpw: ['S3CRET', 'secret'],
  });
});

test('a guest reads its instance id over IPv6', async () => {
  const text = await guest.run(
    'curl',
    '-sS',
    '--max-time',
    '5',
    'http://[fe80::a9fe:a9fe%eth0]/latest/meta-data/instance-id',
  );
  assert.equal(text, view.instanceId);
});

test('parameters other than a lost secret can be read one by one', async () => {
  const { osParameters } = exampleView();
  const lost = { ...osParameters, rootpw: { value: null, visibility: 'secret' as const } };
  const base = '/ganeti/latest/os/parameters';
  const read = async (path: string, reader = guest) => {
    const { status, headers, body } = await askFromGuest(reader.namespace, path);
    return { status, cache: headers['cache-control'], text: body.toString() };
  };
  assert.deepEqual(await read(`${base}/rootpw`), {
    ...{ status: 200, cache: 'no-store', text: 'S3CRET' },
  });
  assert.equal((await read(`${base}/none`)).status, 404);
  assert.equal((await read(`${base}/`)).text, 'dhcp\nhostkey\nrootpw\n');
  // This metad keeps secrets that it knew; another instance's were lost before its start.
  const channel = { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: '169.254.0.2', hopLimit: 1 };
  const neighbour = await lab.addGuest(channel);
  const uuid = '00000000-1f3d-49e9-b2b7-000000000002';
  const put = await lab.put(
    exampleView({ uuid, name: 'web2', nics: [], channel, osParameters: lost }),
  );
  assert.equal(put.headers[LOST_SECRETS_HEADER], 'rootpw');
  assert.equal((await read(`${base}/hostkey`, neighbour)).text, 'KEY123');
  const gone = await read(`${base}/rootpw`, neighbour);
  assert.equal(gone.status, 410);
  assert.match(gone.text, /rootpw.*gnt-instance modify, startup or reinstall/);
  assert.equal((await read(`${base}.json`, neighbour)).status, 410);
  const partial = await read(`${base}.json?partial=true`, neighbour);
  assert.deepEqual([partial.status, partial.cache], [200, 'no-store']);
  assert.deepEqual(JSON.parse(partial.text), {
    dhcp: ['yes', 'public'],
    hostkey: ['KEY123', 'private'],
    rootpw: [null, 'secret'],
  });
});
