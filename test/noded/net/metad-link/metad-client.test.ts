import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guestState } from '#shared/contract/guest-handover.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type {
  ControlAnswer,
  ControlChannel,
  ControlRequest,
} from '../../../../noded/net/metad-link/control-request.ts';
import {
  createMetadCalls,
  type MetadCalls,
} from '../../../../noded/net/metad-link/metad-client.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';

const UUID = '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f';
const QUEUE = { firstOffset: 0, bytes: '' };
const STATE = guestState.parse({
  ...{ instanceId: 'i', tokens: null, password: '', toGuest: QUEUE, toHost: QUEUE },
});
const VIEW = exampleView();

interface Lab {
  readonly calls: MetadCalls;
  readonly asked: ControlRequest[];
}

/** Calls over a channel with one answer. */
function lab(answer: Partial<ControlAnswer> & { readonly text?: string }): Lab {
  const asked: ControlRequest[] = [];
  const { status = 200, headers = {}, text = '' } = answer;
  const ask = (request: ControlRequest): Promise<ControlAnswer> => {
    asked.push(request);
    return Promise.resolve({ status, headers, body: Buffer.from(text) });
  };
  const channel = { ask, upgrade: ask } as unknown as ControlChannel;
  return { calls: createMetadCalls(channel), asked };
}

/** Calls that concern an instance, with the request of each. */
const CALLS: readonly (readonly [string, (calls: MetadCalls) => Promise<unknown>])[] = [
  ['DELETE tokens', (calls) => calls.replaceTokens(UUID)],
  ['GET secrets', (calls) => calls.secrets(UUID)],
  ['POST leave', (calls) => calls.leave(UUID)],
  ['DELETE leave', (calls) => calls.stay(UUID)],
  ['PUT arrive', (calls) => calls.arrive(UUID, STATE)],
  ['GET queue?', (calls) => calls.readQueue(UUID)],
  ['POST queue', (calls) => calls.writeQueue(UUID, Buffer.from('x'))],
  ['GET connect/22', (calls) => calls.connect(UUID, 22)],
];

test('each call asks its path, and an instance without a view is INSTANCE_NOT_FOUND', async () => {
  for (const [request, call] of CALLS) {
    const { calls, asked } = lab({ status: 404 });
    await assert.rejects(call(calls), { code: 'INSTANCE_NOT_FOUND' }, request);
    const [method, part] = request.split(' ');
    assert.deepEqual(
      asked.map((each) => [each.method, each.path]),
      [[method, `/v1/instances/${UUID}/${part}`]],
    );
  }
});

test('a refusal names its reason, in JSON or in plain text', async () => {
  const refusals = ['{"code": "VALIDATION", "message": "name: too long"}', ' name: too long \n'];
  const views = [
    (calls: MetadCalls) => calls.putView(VIEW),
    (calls: MetadCalls) => calls.deleteView(UUID),
    (calls: MetadCalls) => calls.metrics(),
  ];
  for (const text of refusals) {
    for (const call of [...CALLS.slice(0, -1).map(([, each]) => each), ...views])
      await assert.rejects(call(lab({ status: 400, text }).calls), (error) => {
        assert.ok(isAppError(error, 'METAD_REFUSED'));
        return error.message.endsWith(': name: too long');
      });
    await assert.rejects(lab({ status: 502, text }).calls.connect(UUID, 22), {
      ...{ code: 'GUEST_UNREACHABLE', message: 'name: too long' },
    });
  }
  await assert.rejects(lab({ status: 502 }).calls.connect(UUID, 22), /port 22 does not answer/);
});

test('a full queue and a too long message are CHANNEL_FULL, with the time to wait', async () => {
  for (const status of [413, 429]) {
    const { calls } = lab({ status, headers: { 'retry-after': '3' } });
    await assert.rejects(calls.writeQueue(UUID, Buffer.from('x')), {
      ...{ code: 'CHANNEL_FULL', details: { status, retryAfter: '3' } },
    });
  }
});

test('a view is sent as JSON; the answer names the secrets that metad lacks', async () => {
  const headers = { 'x-gnt-lost-secrets': 'password,key' };
  const { calls, asked } = lab({ status: 204, headers });
  assert.deepEqual(await calls.putView(VIEW, true), ['password', 'key']);
  assert.equal(asked[0]?.path, `/v1/instances/${VIEW.uuid}?guest=up`);
  assert.equal(asked[0]?.headers?.['content-type'], 'application/json');
  assert.equal(String(asked[0]?.body), JSON.stringify(VIEW));
  const plain = lab({ status: 204 });
  assert.deepEqual(await plain.calls.putView(VIEW), []);
  assert.equal(plain.asked[0]?.path, `/v1/instances/${VIEW.uuid}`);
});

test('a queue is read from an offset, and its request may wait longer than the guest', async () => {
  const headers = { 'x-gnt-offset': '9' };
  const { calls, asked } = lab({ headers, text: 'ab' });
  const { signal } = new AbortController();
  assert.deepEqual(await calls.readQueue(UUID, { offset: 7, waitS: 60, signal }), {
    ...{ bytes: Buffer.from('ab'), nextOffset: 9 },
  });
  assert.ok(asked[0]?.path.endsWith('/queue?offset=7&wait=60'));
  assert.ok((asked[0]?.timeoutMs ?? 0) > 60_000);
  assert.equal(asked[0]?.signal, signal);
  assert.equal(await lab({ status: 204 }).calls.readQueue(UUID), null);
});

test('the state of a leaving guest and its secrets arrive whole', async () => {
  const { calls, asked } = lab({ text: JSON.stringify(STATE) });
  assert.deepEqual(await calls.leave(UUID), STATE);
  await calls.arrive(UUID, STATE);
  assert.equal(String(asked[1]?.body), JSON.stringify(STATE));
  const secrets = await lab({ text: '{"password": "hush"}' }).calls.secrets(UUID);
  assert.deepEqual([...secrets.keys()], ['password']);
  assert.equal(String(secrets.get('password')), '<redacted>');
  await assert.rejects(lab({ text: '{"password": 1}' }).calls.secrets(UUID));
  await assert.rejects(lab({ text: '[]' }).calls.leave(UUID));
});

test('a tree is read below a path, without lost secrets if asked', async () => {
  const { calls, asked } = lab({ headers: { 'content-type': 'text/x' }, text: 'leaf' });
  assert.deepEqual(await calls.tree(UUID, '//a b/c', true), {
    ...{ status: 200, contentType: 'text/x', body: Buffer.from('leaf') },
  });
  assert.equal(asked[0]?.path, `/v1/instances/${UUID}/tree/a%20b/c?partial=true`);
  assert.equal((await lab({ status: 404 }).calls.tree(UUID, '')).contentType, 'text/plain');
});

test('a status of another protocol is METAD_UNAVAILABLE', async () => {
  for (const answer of [{ text: '{}' }, { text: 'no JSON' }, { status: 500 }])
    await assert.rejects(lab(answer).calls.status(), { code: 'METAD_UNAVAILABLE' });
});
