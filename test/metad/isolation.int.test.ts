import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const SAME_IP = '169.254.0.1';
const views = [
  exampleView(),
  exampleView({
    name: 'web2.example.com',
    uuid: '00000000-1f3d-49e9-b2b7-000000000002',
    instanceId: '00000000-3bf8-491f-9c11-000000000002',
    nics: [],
    channel: { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: SAME_IP, hopLimit: 1 },
  }),
];
const URL_OF_ID = 'http://169.254.169.254/latest/meta-data/instance-id';

let lab: ChannelLab;
let guests: Guest[];

before(async () => {
  lab = await ChannelLab.create();
  guests = [];
  for (const view of views) {
    guests.push(await lab.addGuest(view.channel));
    assert.equal((await lab.put(view)).status, 204);
  }
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

function guestAt(index: number): Guest {
  const guest = guests[index];
  assert.ok(guest);
  return guest;
}

test('two guests with the same address get each their own data, over both families', async () => {
  for (const index of [1, 0]) {
    assert.equal(
      await guestAt(index).run('curl', '-sS', '-m5', URL_OF_ID),
      views[index]?.instanceId,
    );
    const v6 = 'http://[fe80::a9fe:a9fe%eth0]/latest/meta-data/instance-id';
    assert.equal(await guestAt(index).run('curl', '-sS', '-m5', v6), views[index]?.instanceId);
  }
});

test('a request from an address of another instance is refused', async () => {
  const guest = guestAt(0);
  await guest.run('ip', 'addr', 'add', '169.254.0.77/16', 'dev', 'eth0');
  await lab.ip('route', 'replace', '169.254.0.77/32', 'dev', 'gnt.com.0');
  const status = await guest.run(
    ...(['curl', '-sS', '-m5', '--interface', '169.254.0.77', '-o', '/dev/null'] as const),
    ...(['-w', '%{http_code}', URL_OF_ID] as const),
  );
  assert.equal(status, '403');
});

test('an IPv6 source that is not link-local is refused', async () => {
  const guest = guestAt(0);
  await guest.run('ip', 'addr', 'add', 'fd00::77/64', 'dev', 'eth0', 'nodad');
  await lab.ip('-6', 'route', 'replace', 'fd00::77/128', 'dev', 'gnt.com.0');
  const status = await guest
    .run(
      ...(['curl', '-sS', '-m5', '--interface', 'fd00::77', '-o', '/dev/null', '-w'] as const),
      ...(['%{http_code}', 'http://[fe80::a9fe:a9fe%eth0]/latest/user-data'] as const),
    )
    .catch(() => 'no connection');
  assert.match(status, /^(403|no connection)$/);
});

test('replies have the hop limit of the view as their IP TTL', async () => {
  const ttlOf = async (hopLimit: number): Promise<string> => {
    const view = views[0];
    assert.ok(view);
    await lab.put({ ...view, channel: { ...view.channel, hopLimit } });
    await guestAt(0).run('nft', 'add', 'table', 'ip', 'ttl');
    await guestAt(0).run(
      'nft',
      'add',
      'chain',
      'ip',
      'ttl',
      'in',
      '{ type filter hook input priority 0; }',
    );
    await guestAt(0).run(
      ...(['nft', 'add', 'rule', 'ip', 'ttl', 'in', 'ip', 'saddr', '169.254.169.254'] as const),
      ...(['tcp', 'sport', '80', 'ip', 'ttl', '!=', String(hopLimit), 'drop'] as const),
    );
    try {
      return await guestAt(0).run('curl', '-sS', '-m3', URL_OF_ID);
    } finally {
      await guestAt(0).run('nft', 'delete', 'table', 'ip', 'ttl');
    }
  };
  assert.equal(await ttlOf(1), views[0]?.instanceId);
  assert.equal(await ttlOf(64), views[0]?.instanceId);
});

test('a device cannot serve two instances', async () => {
  const view = exampleView({ uuid: '00000000-1f3d-49e9-b2b7-000000000003' });
  const answer = await lab.put(view);
  assert.equal(answer.status, 409);
  assert.match(answer.body.toString(), /gnt\.com\.0 belongs to instance web1/);
});

test('the sockets and open connections of a removed instance are closed before the answer', async () => {
  const view = views[1];
  assert.ok(view);
  const { namespace } = guestAt(1);
  const waiting = askFromGuest(namespace, '/ganeti/latest/read?wait=30');
  waiting.catch(() => undefined);
  await askFromGuest(namespace, '/');
  assert.equal((await lab.control('DELETE', `/v1/instances/${view.uuid}`)).status, 204);
  await assert.rejects(waiting);
  // The kernel's reset has no device: with the neighbour's equal address it would go there.
  await lab.ip('route', 'del', `${SAME_IP}/32`, 'dev', 'gnt.com.0');
  await assert.rejects(askFromGuest(namespace, '/'), { code: 'ECONNREFUSED' });
  assert.equal((await lab.control('DELETE', `/v1/instances/${view.uuid}`)).status, 204);
});

test('a replaced device of the same name is served from the next view on', async () => {
  const view = views[0];
  assert.ok(view);
  await lab.disconnect('gnt.com.0');
  await lab.connect(guestAt(0).namespace, view.channel);
  assert.equal((await lab.put({ ...view, revision: 5 })).status, 204);
  assert.equal((await askFromGuest(guestAt(0).namespace, '/')).status, 200);
});

test('an older view is refused, and the newer view is still served', async () => {
  const view = views[0];
  assert.ok(view);
  const answer = await lab.put({ ...view, revision: 4, name: 'old.example.com' });
  assert.equal(answer.status, 409);
  const name = await askFromGuest(guestAt(0).namespace, '/latest/meta-data/hostname');
  assert.equal(name.body.toString(), view.name);
});

test('a view for a missing device gets 503, and is not served', async () => {
  const view = exampleView({
    uuid: '00000000-1f3d-49e9-b2b7-000000000009',
    channel: { ...exampleView().channel, device: 'gnt.com.99' },
  });
  const answer = await lab.put(view);
  assert.equal(answer.status, 503);
  assert.match(answer.body.toString(), /gnt\.com\.99/);
  const status = await lab.control('GET', '/v1/status');
  assert.doesNotMatch(status.body.toString(), /gnt\.com\.99/);
});
