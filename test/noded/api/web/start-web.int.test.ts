import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { test } from 'node:test';
import { apiError } from '#shared/contract/api.ts';
import { isUpgrade } from '#shared/contract/endpoint.ts';
import { listEndpoints } from '#shared/contract/endpoints.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { createOpcode } from '../../support/opcodes.ts';
import { askWeb, createWebLab } from './web-lab.ts';
import type { Answer } from '../../support/api-lab.ts';

type Lab = Awaited<ReturnType<typeof createWebLab>>;

const endpoints = listEndpoints().filter((endpoint) => !isUpgrade(endpoint));

function codeOf({ status, text }: Answer): string {
  return `${status} ${apiError.parse(JSON.parse(text)).code}`;
}

/** Adds the record of an instance with a NIC and tags. */
async function addInstance({ dependencies }: Lab, name: string): Promise<string> {
  const opcode = createOpcode({
    name,
    tags: ['secret-tag'],
    osParameters: { key: 'secret-value' },
  });
  const node = { nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' };
  return (await dependencies.instances.create(planNewInstance(opcode, node))).uuid;
}

function fill(path: string, name: string): string {
  return path.replace('{name}', name).replace(/\{\*?\w+\}/g, '1');
}

test('a password opens a session, and a wrong one does not', async (t) => {
  const { login, tryLogin, origin } = await createWebLab(t, ['alice write', 'bob instance:web*']);
  assert.equal(codeOf(await tryLogin('alice', 'wrong')), '401 LOGIN_FAILED');
  assert.equal(codeOf(await tryLogin('carol')), '401 LOGIN_FAILED');
  assert.equal(codeOf(await askWeb(`${origin}/v1/jobs`)), '401 LOGIN_REQUIRED');
  const { session } = await login('bob');
  const { user, role, isBound } = session;
  assert.deepEqual({ user, role, isBound }, { user: 'bob', role: 'read', isBound: true });
  const answer = await tryLogin('alice');
  assert.match(
    answer.headers['set-cookie']?.[0] ?? '',
    /^__Host-gnt=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  );
  assert.match(answer.headers['strict-transport-security'] ?? '', /max-age/);
});

test('ten wrong passwords block the network on every interface with the same limit', async (t) => {
  const { tryLogin, limit } = await createWebLab(t, ['alice']);
  for (let count = 0; count < 10; count += 1) await tryLogin('alice', 'wrong');
  const answer = await tryLogin('alice');
  assert.equal(codeOf(answer), '429 TOO_MANY_LOGINS');
  assert.ok(Number(answer.headers['retry-after']) > 0);
  assert.ok(limit.waitS('127.0.0.1') > 0);
});

test('attempts whose bodies arrive late count towards the limit', async (t) => {
  const { origin } = await createWebLab(t, ['alice']);
  const body = JSON.stringify({ user: 'alice', password: 'wrong' });
  const begun = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const asked = request(`${origin}/login`, {
        ...{ method: 'POST', agent: false, rejectUnauthorized: false },
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      });
      asked.write(body.slice(0, 1));
      const [socket] = (await once(asked, 'socket')) as [TLSSocket];
      if (socket.connecting) await once(socket, 'secureConnect');
      return asked;
    }),
  );
  const statuses: (number | undefined)[] = [];
  for (const asked of begun) {
    const answered = once(asked, 'response');
    asked.end(body.slice(1));
    const [answer] = (await answered) as [IncomingMessage];
    statuses.push(answer.resume().statusCode);
  }
  assert.equal(statuses.filter((status) => status === 401).length, 10);
  assert.equal(statuses.filter((status) => status === 429).length, 10);
});

test('a form of another site cannot log in', async (t) => {
  const { origin } = await createWebLab(t, ['alice']);
  const post = async (headers: Record<string, string>): Promise<string> =>
    codeOf(await askWeb(`${origin}/login`, { method: 'POST', headers, body: '{}' }));
  assert.equal(await post({ 'content-type': 'text/plain' }), '400 VALIDATION');
  assert.equal(await post({ 'sec-fetch-site': 'cross-site' }), '403 NOT_ALLOWED');
  assert.equal(await post({ origin: 'https://evil.example.com' }), '403 NOT_ALLOWED');
});

test('a logout, another password, other options and a removal each end the session', async (t) => {
  const { login, writeUsers } = await createWebLab(t, ['alice write']);
  const first = await login('alice');
  assert.equal((await first.ask('POST /logout')).status, 204);
  assert.equal(codeOf(await first.ask('GET /v1/jobs')), '401 LOGIN_REQUIRED');
  const changes: readonly [readonly string[], string][] = [
    [['alice write'], 'another'],
    [['alice read'], 'correct horse'],
    [['alice write instance:web*'], 'correct horse'],
    [[], 'correct horse'],
  ];
  for (const [lines, password] of changes) {
    await writeUsers(['alice write']);
    const { ask } = await login('alice');
    assert.equal((await ask('GET /v1/jobs')).status, 200);
    await writeUsers(lines, password);
    assert.equal(codeOf(await ask('GET /v1/jobs')), '401 LOGIN_REQUIRED', lines.join());
  }
});

test('a user without write changes nothing', async (t) => {
  const { login } = await createWebLab(t, ['alice read']);
  const { ask } = await login('alice');
  for (const { key, method, path } of endpoints.filter((each) => each.method !== 'GET')) {
    const body = method === 'POST' ? {} : undefined;
    assert.equal(
      codeOf(await ask(`${method} ${fill(path, 'web1')}`, body)),
      '403 NOT_ALLOWED',
      key,
    );
  }
});

test('users are refused each endpoint that they may not call', async (t) => {
  const { login } = await createWebLab(t, ['alice write', 'bob write instance:web*']);
  const [alice, bob] = [await login('alice'), await login('bob')];
  const refusedTo = (user: typeof alice, allowed: readonly (string | undefined)[]) =>
    endpoints
      .filter(({ access }) => !allowed.includes(access))
      .map(async ({ key, method, path }) => {
        const body = method === 'POST' ? {} : undefined;
        const answer = await user.ask(`${method} ${fill(path, 'web1')}`, body);
        assert.equal(codeOf(answer), '403 NOT_ALLOWED', key);
      });
  await Promise.all(refusedTo(bob, ['instance', 'own', 'all']));
  await Promise.all(refusedTo(alice, ['cluster', 'instance', 'own', 'all']));
});

test('for a bound user, another instance is as one that does not exist', async (t) => {
  const lab = await createWebLab(t, ['bob write instance:web*']);
  await addInstance(lab, 'foreign');
  const { ask } = await lab.login('bob');
  for (const { key, method, path } of endpoints.filter(({ access }) => access === 'instance')) {
    const [foreign, missing] = [
      await ask(`${method} ${fill(path, 'foreign')}`),
      await ask(`${method} ${fill(path, 'missing')}`),
    ];
    assert.equal(codeOf(foreign), '404 INSTANCE_NOT_FOUND', key);
    assert.equal(foreign.text.replaceAll('foreign', 'missing'), missing.text, key);
  }
});

test('no answer shows a bound user anything of another instance', async (t) => {
  const lab = await createWebLab(t, ['alice write', 'bob write instance:web*']);
  const uuid = await addInstance(lab, 'foreign');
  await addInstance(lab, 'web1');
  const [alice, bob] = [await lab.login('alice'), await lab.login('bob')];
  const submitted = await alice.ask('POST /v1/jobs', {
    ...{ opcode: 'INSTANCE_SHUTDOWN', name: 'foreign' },
  });
  const { id } = JSON.parse(submitted.text) as { id: number };
  const own = endpoints.filter(({ key, access, method }) => {
    const isEndless = key === 'GET /v1/events';
    return method === 'GET' && !isEndless && (access === 'own' || access === 'all');
  });
  assert.ok(own.length > 8);
  for (const { key, path } of own) {
    const at = path.replace('{id}', String(id)).replace('{name}', 'debian');
    const { text, status } = await bob.ask(`GET ${at}`);
    assert.ok(!text.includes('foreign') && !text.includes(uuid), `${key}: ${text}`);
    if (path.includes('{id}')) assert.equal(status, 404, key);
  }
  const { text } = await bob.ask('GET /v1/instance-summaries');
  assert.match(text, /"web1"/);
  assert.equal(codeOf(await bob.ask(`DELETE /v1/jobs/${id}`)), '404 JOB_NOT_FOUND');
});

test('a user submits jobs under their own name, within the bounds of the remote API', async (t) => {
  const { login } = await createWebLab(t, ['alice write']);
  const { ask } = await login('alice');
  const shutdown = { opcode: 'INSTANCE_SHUTDOWN', name: 'web1' };
  const submitter = encodeURIComponent('{"user":"root","scope":null}');
  const { text } = await ask(`POST /v1/jobs?submitter=${submitter}`, shutdown);
  const { id } = JSON.parse(text) as { id: number };
  const job = JSON.parse((await ask(`GET /v1/jobs/${id}`)).text) as { submitter: string };
  assert.equal(job.submitter, 'rapi:alice');
  assert.equal((await ask('POST /v1/jobs?dry-run=1', shutdown)).text, '{"ok":true}');
  const refused = async (opcode: object): Promise<string> =>
    codeOf(await ask('POST /v1/jobs', opcode));
  const create = { opcode: 'INSTANCE_CREATE', name: 'web2' };
  assert.equal(await refused({ ...create, osImage: '/etc/shadow' }), '403 PATH_NOT_ALLOWED');
  assert.equal(await refused({ ...create, importFrom: 'web1' }), '403 NOT_ALLOWED');
  assert.equal(
    await refused({ opcode: 'CLUSTER_SET_PARAMS', remoteFolders: ['/srv'] }),
    '403 NOT_ALLOWED',
  );
  assert.equal(
    await refused({ opcode: 'OS_SET_PARAMS', name: 'debian', trusted: true }),
    '403 NOT_ALLOWED',
  );
});
