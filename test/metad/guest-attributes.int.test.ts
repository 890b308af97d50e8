import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_GUEST_ATTRIBUTE_BYTES, MAX_GUEST_ATTRIBUTES } from '../../metad/config/limits.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { eventsAfter } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const FOLDER = '/computeMetadata/v1/instance/guest-attributes';
const GOOGLE = { 'metadata-flavor': 'Google' };

/** Returns the data of a public key of this type, whose number is 32 zero bytes. */
function keyOf(type: string): string {
  const parts = [type, Buffer.alloc(32)].flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return [length, Buffer.from(part)];
  });
  return Buffer.concat(parts).toString('base64');
}

test('a guest writes attributes within limits, and only with Google’s header', async () => {
  await using lab = await ChannelLab.create();
  const view = exampleView({ dialects: ['ganeti', 'gce'] });
  const guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
  const put = async (
    path: string,
    body: string,
    headers: Record<string, string> = GOOGLE,
  ): Promise<number> =>
    (await askFromGuest(guest.namespace, `${FOLDER}/${path}`, { method: 'PUT', headers, body }))
      .status;
  const get = async (path: string): Promise<string> =>
    (await askFromGuest(guest.namespace, path, { headers: GOOGLE })).body.toString();

  assert.equal(await put('a/b', 'value'), 200);
  assert.equal(await get(`${FOLDER}/a/b`), 'value');
  assert.equal(await put('a/b', 'other', {}), 403);
  assert.equal(await get(`${FOLDER}/a/b`), 'value', 'the header is missing');
  for (const path of ['a', 'a/b/c', '../hostname/x', 'a/%2e%2e', 'a/b%2fc', `a/${'k'.repeat(129)}`])
    assert.ok([404, 405].includes(await put(path, 'x')), path);
  assert.ok((await put('a/long', 'x'.repeat(MAX_GUEST_ATTRIBUTE_BYTES + 1))) >= 400);
  for (let at = 1; at < MAX_GUEST_ATTRIBUTES; at += 1)
    assert.equal(await put(`n/k${at}`, 'x'), 200);
  assert.equal(await put('n/one-more', 'x'), 403);
  assert.equal(await put('a/b', 'changed'), 200, 'a known key can change');
  const whole = JSON.parse(await get(`${FOLDER}/?recursive=true`)) as Record<string, object>;
  assert.equal(Object.keys(whole['n'] ?? {}).length, MAX_GUEST_ATTRIBUTES - 1);

  const remove = async (path: string): Promise<number> => {
    const options = { method: 'DELETE', headers: GOOGLE };
    return (await askFromGuest(guest.namespace, `${FOLDER}/${path}`, options)).status;
  };
  assert.equal(await remove('a/b'), 200);
  assert.equal(await remove('a/b'), 404);
  assert.equal(await remove('n'), 405, 'a whole namespace stays');
  assert.equal((await get(`${FOLDER}/`)).trim(), 'n/');
  assert.equal(await put('n/one-more', 'x'), 200, 'there is room for another value');

  const instanceId = '11111111-2222-4333-8444-555555555555';
  assert.equal((await lab.put({ ...view, revision: 2, instanceId })).status, 204);
  assert.equal(await get(`${FOLDER}/?recursive=true`), '{}', 'another installation begins without');
});

test('the host keys that a guest publishes one after another reach the host in one report, and nothing else of the namespace does', async () => {
  await using lab = await ChannelLab.create();
  const view = exampleView({ dialects: ['gce'] });
  const guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
  const types = ['ecdsa-sha2-nistp256', 'ssh-ed25519', 'ssh-rsa'];
  const published = [
    ['ssh-dss', 'not base64\ncommand="reboot"'],
    ...types.map((type) => [type, keyOf(type)] as const),
  ] as const;
  for (const [type, body] of published) {
    const options = { method: 'PUT', headers: GOOGLE, body };
    const { status } = await askFromGuest(guest.namespace, `${FOLDER}/hostkeys/${type}`, options);
    assert.equal(status, 200);
  }
  const events = await eventsAfter(lab, 0, 1);
  const keys = types.map((type) => `${type} ${keyOf(type)}`);
  assert.deepEqual(
    events.map(({ event }) => event),
    [{ type: 'host-keys', keys, user: null }],
  );
});

test('a guest waits for a change of a whole folder with the ETag of its last answer', async () => {
  await using lab = await ChannelLab.create();
  const view = exampleView({ dialects: ['gce'] });
  const guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
  const path = '/computeMetadata/v1/?recursive=true&alt=json';
  const first = await askFromGuest(guest.namespace, path, { headers: GOOGLE });
  const etag = String(first.headers['etag']);
  let isOver = false;
  const waiting = askFromGuest(
    guest.namespace,
    `${path}&wait_for_change=true&timeout_sec=60&last_etag=${etag}`,
    {
      headers: GOOGLE,
    },
  ).then((answer) => {
    isOver = true;
    return answer;
  });
  // An answer to a request that was sent later shows that the first one waits.
  for (let at = 0; at < 3; at += 1) await askFromGuest(guest.namespace, path, { headers: GOOGLE });
  assert.equal(isOver, false);
  assert.equal((await lab.put({ ...view, revision: 2, metadata: { color: 'blue' } })).status, 204);
  const changed = await waiting;
  assert.notEqual(changed.headers['etag'], etag);
  assert.match(changed.body.toString(), /"color":"blue"/);
});
