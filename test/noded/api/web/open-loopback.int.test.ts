import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiError } from '#shared/contract/api.ts';
import { createApiLab } from '../../support/api-lab.ts';
import { askWeb, enter, openPage } from './web-lab.ts';
import type { Answer } from '../../support/api-lab.ts';

function codeOf({ status, text }: Answer): string {
  return `${status} ${apiError.parse(JSON.parse(text)).code}`;
}

test('an address with a token works once, and the next one is told after its use', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin, nextLink } = await openPage(t, lab);
  const answer = await askWeb(first);
  assert.deepEqual([answer.status, answer.headers.location], [303, '/']);
  assert.match(answer.headers['set-cookie']?.[0] ?? '', /; HttpOnly; SameSite=Strict$/);
  assert.equal(codeOf(await askWeb(first)), '401 LOGIN_FAILED');
  assert.equal(codeOf(await askWeb(`${origin}/?token=x`)), '401 LOGIN_FAILED');
  assert.equal((await askWeb(await nextLink())).status, 303);
});

test('a HEAD request, as of a link preview, does not use the token up', async (t) => {
  const lab = await createApiLab(t);
  const { first } = await openPage(t, lab);
  assert.equal((await askWeb(first, { method: 'HEAD' })).status, 200);
  assert.equal((await askWeb(first)).status, 303);
});

test('the API answers sessions only, with the rights of root', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin } = await openPage(t, lab);
  assert.equal(codeOf(await askWeb(`${origin}/v1/jobs`)), '401 LOGIN_REQUIRED');
  assert.equal(codeOf(await askWeb(`${origin}/metrics`)), '401 LOGIN_REQUIRED');
  const { cookie, session } = await enter(first);
  const { user, role, isBound, node } = session;
  assert.deepEqual(
    { user, role, isBound, node },
    {
      ...{ user: 'root', role: 'write', isBound: false, node: 'node1' },
    },
  );
  assert.equal((await askWeb(`${origin}/v1/jobs`, { headers: { cookie } })).text, '[]');
  assert.equal((await askWeb(`${origin}/metrics`, { headers: { cookie } })).text, 'gnt_up 1\n');
});

test('a change needs the CSRF token of its own session', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin, nextLink } = await openPage(t, lab);
  const { cookie, session } = await enter(first);
  const other = await enter(await nextLink());
  const submit = (headers: Record<string, string>): Promise<Answer> =>
    askWeb(`${origin}/v1/jobs`, {
      method: 'POST',
      headers: { cookie, ...headers },
      body: JSON.stringify({ opcode: 'INSTANCE_SHUTDOWN', name: 'web1' }),
    });
  assert.equal(codeOf(await submit({})), '403 NOT_ALLOWED');
  assert.equal(codeOf(await submit({ 'x-gnt-csrf': other.session.csrf })), '403 NOT_ALLOWED');
  assert.equal((await submit({ 'x-gnt-csrf': session.csrf })).status, 202);
});

test('requests of other sites, and under other names of the host, are refused', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin } = await openPage(t, lab);
  const { cookie } = await enter(first);
  const ask = async (headers: Record<string, string>): Promise<number> =>
    (await askWeb(`${origin}/v1/jobs`, { headers: { cookie, ...headers } })).status;
  assert.equal(await ask({ origin, 'sec-fetch-site': 'same-origin' }), 200);
  assert.equal(await ask({ 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await ask({ 'sec-fetch-site': 'same-site' }), 403);
  assert.equal(await ask({ origin: 'http://127.0.0.1:1' }), 403);
  assert.equal(await ask({ origin: 'null' }), 403);
  const { hostname } = new URL(origin);
  for (const host of [
    'rebound.example.com',
    'localhost',
    '127.0.0.1',
    'gnt-0123456789abcdef.localhost',
  ])
    assert.equal(await ask({ host }), 401, host);
  assert.equal(await ask({ host: `${hostname}:8080` }), 200, 'the port of an SSH tunnel');
});

test('the end of the command ends the page and its sessions', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin, close } = await openPage(t, lab);
  await enter(first);
  close();
  await assert.rejects(askWeb(origin), { code: 'ECONNREFUSED' });
});

test('answers of the API cannot run as documents of the page', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin } = await openPage(t, lab);
  const { cookie } = await enter(first);
  const { headers } = await askWeb(`${origin}/v1/jobs`, { headers: { cookie } });
  assert.match(String(headers['content-security-policy']), /; sandbox$/);
  assert.equal(headers['x-content-type-options'], 'nosniff');
  const page = await askWeb(origin);
  assert.match(
    String(page.headers['content-security-policy']),
    /^default-src 'none'; script-src 'self'/,
  );
  assert.match(page.text, /<!doctype html>/);
});

test('the address of an instance opens the page, whatever dots its name has', async (t) => {
  const lab = await createApiLab(t);
  const { first, origin } = await openPage(t, lab);
  const { cookie } = await enter(first);
  for (const path of ['/instances/web1.example.com', '/instances/web1.js/console', '/jobs/1'])
    assert.match((await askWeb(`${origin}${path}`)).text, /<!doctype html>/, path);
  assert.equal((await askWeb(`${origin}/missing.js`, { headers: { cookie } })).status, 404);
});
