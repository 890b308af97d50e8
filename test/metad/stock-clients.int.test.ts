import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

/**
 * Requests of the dialects' specifications other than reads. request-replay.int.test.ts has the
 * reads of clients.
 */

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

async function get(path: string): Promise<Answer> {
  return await askFromGuest(guest.namespace, path);
}

async function text(path: string): Promise<string> {
  const answer = await get(path);
  assert.equal(answer.status, 200, path);
  return answer.body.toString();
}

test('a token request with a bad TTL, through a proxy or to another path is refused', async () => {
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

test('OpenStack’s password is accepted once', async () => {
  const path = '/openstack/latest/password';
  assert.equal(await text(path), '');
  const post = async (body: string): Promise<number> =>
    (await askFromGuest(guest.namespace, path, { method: 'POST', body })).status;
  assert.equal(await post('x'.repeat(1021)), 400);
  assert.equal(await post('encrypted'), 200);
  assert.equal(await post('other'), 409);
  assert.equal(await text(path), 'encrypted');
});

test('a PUT to a leaf gets 405 with the allowed methods', async () => {
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
