import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
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
