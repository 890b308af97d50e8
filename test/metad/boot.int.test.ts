import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { ChannelLab, type Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

/** A guest's report about its boot is bounded, and concerns that guest only. */

let lab: ChannelLab;
let guest: Guest;
let revision = 1;
const view = exampleView();

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
});
after(() => lab[Symbol.asyncDispose]());

async function post(path: string, body: unknown): Promise<number> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const options = { method: 'POST', body: text };
  return (await askFromGuest(guest.namespace, `/ganeti/latest/boot/${path}`, options)).status;
}

test('a malformed event or status file gets 400, and a long one gets 413', async () => {
  for (const body of ['', '{', '[]', '{}', { name: 'modules-final', event_type: 'sleep' }])
    assert.equal(await post('events', body), 400, JSON.stringify(body));
  for (const body of ['', '[]', '{"v1": []}', '{"v1": 1}'])
    assert.equal(await post('status', body), 400, body);
  assert.equal(await post('events', 'x'.repeat(17 * 1024)), 413);
  assert.equal(await post('status', 'x'.repeat(257 * 1024)), 413);
});

test('long texts are cut, long lists are shortened, and malformed stages are left out', async () => {
  assert.equal(await post('events', { name: 'my-own/thing', event_type: 'start' }), 204);
  const name = `modules-final/${'m'.repeat(200)}`;
  const description = 'd'.repeat(10_000);
  assert.equal(
    await post('events', { name, event_type: 'finish', result: 'FAIL', description }),
    204,
  );
  const errors = Array.from({ length: 200 }, (_, at) => `${at} ${'e'.repeat(600)}`);
  const status = {
    v1: {
      'init-local': { start: 1, finished: 3.5, errors: [] },
      init: { start: 5, finished: 4, errors: 'none' },
      'modules-final': { start: 6, finished: null, errors, recoverable_errors: { WARNING: ['w'] } },
      stage: null,
      datasource: '<script>',
    },
  };
  assert.equal(await post('status', status), 204);
  const events = (
    await eventsUntil(lab, 0, (some) => some.some(({ event }) => event.type === 'boot-result'))
  ).map(({ event, instance }) => {
    assert.equal(instance, view.uuid);
    return event;
  });
  assert.equal(events.length, 2);
  const [failed, ended] = events;
  assert.ok(failed?.type === 'boot' && ended?.type === 'boot-result');
  assert.deepEqual([failed.event.module?.length, failed.event.description.length], [128, 500]);
  assert.deepEqual([ended.result.errors.length, ended.result.errors[0]?.length], [20, 500]);
  assert.deepEqual(ended.result.recoverableErrors, ['WARNING: w']);
  assert.deepEqual(ended.result.stages, [{ name: 'init-local', seconds: 2.5 }]);
});

test('malformed items after the first 20 texts of a list are ignored', async () => {
  const texts = Array.from({ length: 20 }, (_, at) => `error ${at}`);
  const errors = [...texts, ...Array<number>(1000).fill(0)];
  const warnings = { WARNING: ['w', ...texts, ...Array<number>(1000).fill(0)] };
  const since = (await eventsUntil(lab, 0, (some) => some.length > 0)).at(-1)?.sequence ?? 0;
  assert.equal(
    await post('status', { v1: { init: { errors, recoverable_errors: warnings } } }),
    204,
  );
  const [last] = await eventsUntil(lab, since, (some) => some.length > 0);
  assert.ok(last?.event.type === 'boot-result');
  assert.deepEqual(last.event.result.errors, texts);
  assert.equal(last.event.result.recoverableErrors.length, 20);
});

test('posted host keys are reported without duplicates and malformed keys, with a valid user name only', async () => {
  const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
  const ready = async (form: Record<string, string>): Promise<void> => {
    const options = { method: 'POST', body: new URLSearchParams(form).toString() };
    const { status } = await askFromGuest(guest.namespace, '/ganeti/latest/ready', options);
    assert.equal(status, 204);
  };
  const since = (await eventsUntil(lab, 0, (some) => some.length > 0)).at(-1)?.sequence ?? 0;
  await ready({ pub_key_rsa: 'N/A', pub_key_dsa: `${key}\u001b[2J`, note: key });
  const many: Record<string, string> = {};
  for (let at = 0; at < 20; at++) many[`pub_key_${at}`] = `${key} root@${at}`;
  await ready({ ...many, login_user: '-oProxyCommand=reboot' });
  await ready({ pub_key_ed25519: `${key} root@web1\n`, login_user: 'debian' });
  const isLast = ({ event }: MetadEvent): boolean =>
    event.type === 'host-keys' && event.user !== null;
  const events = (await eventsUntil(lab, since, (some) => some.some(isLast))).map(
    ({ event }) => event,
  );
  assert.deepEqual(
    events.filter(({ type }) => type === 'host-keys'),
    [
      { type: 'host-keys', keys: [key], user: null },
      { type: 'host-keys', keys: [key], user: 'debian' },
    ],
  );
});

test('private and secret values of the instance are masked in the events of its guest', async () => {
  const padding = 'x'.repeat(497);
  const errors = ['chpasswd: S3CRET', "printed 'KEY123'", `${padding}S3CRET`];
  assert.equal(await post('status', { v1: { 'modules-final': { errors } } }), 204);
  const event = { name: 'modules-final/S3CRET', event_type: 'finish', description: 'S3CRET' };
  assert.equal(await post('events', event), 204);
  const last = await eventsUntil(lab, 0, (some) => some.at(-1)?.event.type === 'boot');
  const said = JSON.stringify(last);
  assert.match(said, /chpasswd: /);
  assert.doesNotMatch(said, /S3C|KEY123/);
});

test('texts of a boot are redacted while a secret of the guest is lost', async () => {
  const hush = (value: string | null) => ({ value, visibility: 'secret' as const });
  const serve = async (value: string | null, query: '' | '?guest=up'): Promise<void> => {
    const osParameters = { ...view.osParameters, hush: hush(value) };
    revision += 1;
    assert.equal((await lab.put({ ...view, revision, osParameters }, query)).status, 204);
  };
  /** Returns the stored text of an error and of an event. */
  const quote = async (): Promise<unknown> => {
    const since = (await eventsUntil(lab, 0, (some) => some.length > 0)).at(-1)?.sequence ?? 0;
    const errors = ['it is s3cret-value', ''];
    assert.equal(await post('status', { v1: { 'modules-final': { errors } } }), 204);
    const event = { name: 'init-local/s3cret-value', event_type: 'start' };
    assert.equal(await post('events', event), 204);
    return (await eventsUntil(lab, since, (some) => some.length > 1)).map(({ event: said }) =>
      said.type === 'boot-result' ? said.result.errors : said.type === 'boot' && said.event.module,
    );
  };
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve(null, '?guest=up');
  await post('events', { name: 'init-local', event_type: 'start' });
  assert.deepEqual(await quote(), [['<redacted>', ''], '<redacted>']);
  // A repeated secret is known again.
  await serve('s3cret-value', '?guest=up');
  assert.deepEqual(await quote(), [['it is <redacted>', ''], '<redacted>']);
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve(null, '?guest=up');
  // After its start, a guest is not served lost values.
  await serve(null, '');
  await serve(null, '?guest=up');
  await post('events', { name: 'init-local', event_type: 'start' });
  assert.deepEqual(await quote(), [['it is s3cret-value', ''], 's3cret-value']);
});

test('a former private or secret value stays masked until the guest starts again', async () => {
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  const serve = async (key: object, hush: string, query: '' | '?guest=up'): Promise<void> => {
    revision += 1;
    const secret = { value: hush, visibility: 'secret' as const };
    const osParameters = { ...view.osParameters, ...key, hush: secret };
    assert.equal((await lab.put({ ...view, revision, osParameters }, query)).status, 204);
  };
  const quote = async (): Promise<unknown> => {
    await post('events', { name: 'init-local', event_type: 'start' });
    const since = (await eventsUntil(lab, 0, (some) => some.length > 0)).at(-1)?.sequence ?? 0;
    const errors = ['former-secret, former-key and later-secret'];
    assert.equal(await post('status', { v1: { 'modules-final': { errors } } }), 204);
    const isResult = ({ event }: MetadEvent): boolean => event.type === 'boot-result';
    const said = (await eventsUntil(lab, since, (some) => some.some(isResult))).find(isResult);
    return said?.event.type === 'boot-result' && said.event.result.errors;
  };
  const key = { hidden: { value: 'former-key', visibility: 'private' as const } };
  await serve(key, 'former-secret', '');
  await serve({}, 'later-secret', '?guest=up');
  assert.deepEqual(await quote(), ['<redacted>, <redacted> and <redacted>']);
  await serve({}, 'later-secret', '');
  assert.deepEqual(await quote(), ['former-secret, former-key and <redacted>']);
});

test('a boot event gets 404 without the ganeti dialect', async () => {
  revision += 1;
  await lab.put({ ...view, revision, dialects: ['nocloud'] });
  assert.equal(await post('events', { name: 'init-local', event_type: 'start' }), 404);
});
