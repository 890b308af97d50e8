import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { openRelayLab, type RelayLab, SECRET } from '../lab/relay-lab.ts';
import { askFromGuest, type GuestRequest, sendRaw } from './support/guest-http.ts';

/** A hostile guest, and a hostile server of a relay. */

const seen: { readonly head: string; readonly body: string }[] = [];
let answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
let lab: RelayLab;

before(async () => {
  lab = await openRelayLab(
    (request, response) => {
      if (answer) return answer(request, response);
      void text(request).then((body) => {
        seen.push({ head: `${request.method} ${request.url}`, body });
        response.end('fine');
      });
    },
    ['gnt:relay=api'],
  );
  await lab.serve();
});
after(async () => lab[Symbol.asyncDispose]());
beforeEach(async () => {
  seen.length = 0;
  answer = undefined;
  await lab.configure({ api: { url: `${lab.origin}/v1`, rate: 10_000 } });
});

async function ask(path: string, options: GuestRequest = {}) {
  const { status, headers, body } = await askFromGuest(lab.guest.namespace, path, options);
  return { status, headers, text: body.toString('latin1') };
}

const HEAD = 'HTTP/1.1\r\nHost: 169.254.169.254\r\n';

test('no framing of a guest makes two requests of one', async () => {
  const inner = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
  const attacks = [
    `POST /relay/api/a ${HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    `POST /relay/api/a ${HEAD}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    `POST /relay/api/a ${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${inner}`,
    `POST /relay/api/a ${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inner}`,
    `POST /relay/api/a ${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`,
    `POST /relay/api/a ${HEAD}Content-Length: +4\r\n\r\nabcd${inner}`,
    `POST /relay/api/a ${HEAD}Transfer-Encoding: chunked\r\n\r\n4;x=\n\r\nabcd\r\n0\r\n\r\n${inner}`,
    `GET /relay/api/a ${HEAD}Content-Length: ${inner.length}\r\n\r\n${inner}`,
    `GET /relay/api/a ${HEAD}X: y\r\n Transfer-Encoding: chunked\r\n\r\n${inner}`,
    `GET /relay/api/a HTTP/1.1\r\nHost: 169.254.169.254\nX:\r\rGET /admin HTTP/1.1\r\n\r\n`,
  ];
  for (const attack of attacks)
    await sendRaw(lab.guest.namespace, attack.replace(HEAD, `${HEAD}Connection: close\r\n`));
  assert.deepEqual(
    seen.filter(({ head, body }) => head.includes('admin') || body.includes('admin')),
    [],
  );
});

test('a body is one body at the server, whatever it contains', async () => {
  const body = '0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
  for (const headers of [{ 'transfer-encoding': 'chunked' }, {}] as Record<string, string>[])
    await ask('/relay/api/a', { method: 'POST', body, headers });
  assert.deepEqual(seen, [
    { head: 'POST /v1/a', body },
    { head: 'POST /v1/a', body },
  ]);
});

test('no request target of a guest leaves the URL of the relay', async () => {
  const targets = [
    ...[
      '/relay/api/../admin',
      '/relay/api/%2e%2e/admin',
      '/relay/api//admin',
      '/relay/api/\\admin',
    ],
    ...[
      '/relay/api/a#b',
      '/relay/api/..;/admin',
      '/relay/../relay/api/../../admin',
      '/relay//api/x',
    ],
    ...['/relay/api%2f..%2fadmin', '/relay/api/%252e%252e/admin', '/relay/api/a%0d%0aX:y'],
    ...[`http://169.254.169.254/relay/api/../admin`, '/relay/../image', '/relay/../../../v1/node'],
  ];
  for (const target of targets) {
    const raw = await sendRaw(
      lab.guest.namespace,
      `GET ${target} ${HEAD}Connection: close\r\n\r\n`,
    );
    assert.match(raw, /^HTTP\/1\.1 40[034] /, target);
  }
  for (const target of ['http://evil.example/relay/api/a', 'https://169.254.169.254/relay/api/a'])
    assert.match(
      await sendRaw(lab.guest.namespace, `GET ${target} ${HEAD}Connection: close\r\n\r\n`),
      /^HTTP\/1\.1 40[03] /,
    );
  assert.deepEqual(seen, []);
  assert.equal((await ask('/relay/api/a')).status, 200);
});

test('methods that show or bypass the credential are refused', async () => {
  await lab.configure({ api: { methods: ['GET', 'POST'] } });
  for (const method of ['TRACE', 'OPTIONS', 'DELETE', 'PROPFIND', 'M-SEARCH'])
    assert.equal((await ask('/relay/api/a', { method })).status, 405, method);
  const connect = await sendRaw(lab.guest.namespace, `CONNECT /relay/api/a ${HEAD}\r\n`);
  assert.match(connect, /^HTTP\/1\.1 40[05] /);
  const upgrade = await ask('/relay/api/a', { headers: { connection: 'upgrade', upgrade: 'tcp' } });
  assert.equal(upgrade.status, 200);
  assert.equal(seen.length, 1);
});

test('a page or a proxy in the guest cannot use the relay', async () => {
  for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '1.2.3.4' }])
    assert.equal((await ask('/relay/api/a', { headers: { ...headers } })).status, 403);
  assert.deepEqual(seen, []);
});

test('a server that echoes the credential shows stars to the guest', async () => {
  const login = Buffer.from(`x:${SECRET}`).toString('base64');
  const url = encodeURIComponent(SECRET);
  answer = ({ headers }, response) => {
    const line = `${headers.authorization} ${login} ${url} ${JSON.stringify({ SECRET })}`;
    response.writeHead(200, { 'x-echo': line, etag: `"${SECRET}"` });
    // One byte per packet and more.
    let at = 0;
    const step = (): void => {
      if (at >= line.length) return void response.end();
      response.write(line.slice(at, (at += 3)), () => setImmediate(step));
    };
    step();
  };
  const { text: shown, headers } = await ask('/relay/api/a');
  for (const found of [shown, JSON.stringify(headers)]) {
    assert.ok(found.includes('****'));
    for (const form of [SECRET, url, login.slice(8, -8), SECRET.slice(4, 20)])
      assert.equal(found.includes(form), false, form);
  }
});

test('an answer in which the credential cannot be found is refused', async () => {
  for (const headers of [
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'identity, br' },
    { 'transfer-encoding': 'gzip, chunked' },
  ] as Record<string, string>[]) {
    answer = (_request, response) => void response.writeHead(200, headers).end(gzipSync(SECRET));
    const { status, text: reason } = await ask('/relay/api/a');
    assert.equal(status, 502, reason);
    assert.equal(reason.includes(SECRET), false);
  }
});

test('redirections stay inside of the relay, and do not carry the credential elsewhere', async () => {
  answer = ({ url }, response) => {
    const location = url === '/v1/in' ? '/v1/other?x=1' : `https://evil.example/?${SECRET}`;
    response.writeHead(302, { location }).end();
  };
  const inside = await ask('/relay/api/in');
  assert.deepEqual([inside.status, inside.headers.location], [302, '/relay/api/other?x=1']);
  const outside = await ask('/relay/api/out');
  assert.equal(outside.status, 502);
  assert.match(outside.text, /redirects to evil\.example, outside/);
  assert.equal(outside.text.includes(SECRET), false);
  answer = (_request, response) => void response.writeHead(201, { location: '/x' }).end();
  const created = await ask('/relay/api/a');
  assert.deepEqual([created.status, created.headers.location], [201, undefined]);
});

test('a server cannot break the connection of the guest', async () => {
  const raw = (bytes: string) => {
    answer = ({ socket }) => void socket.end(bytes);
  };
  for (const [bytes, expected] of [
    ['HTTP/1.1 101 Switching\r\nUpgrade: tcp\r\nConnection: upgrade\r\n\r\n', 502],
    ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 502],
    ['HTTP/1.1 200 OK\r\nX: a\u0000b\r\nContent-Length: 0\r\n\r\n', 502],
    ['HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n', 502],
    ['not http\r\n\r\n', 502],
    ['', 502],
    [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 502],
  ] as const) {
    raw(bytes);
    assert.equal((await ask('/relay/api/a')).status, expected, bytes.slice(0, 60));
  }
  raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
  await assert.rejects(ask('/relay/api/a'), /aborted|hang up/);
  raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz');
  await assert.rejects(ask('/relay/api/a'), /aborted|hang up/);
  answer = undefined;
  assert.equal((await ask('/relay/api/a')).status, 200);
});

test('a cookie of the server never reaches the guest, nor back', async () => {
  answer = (_request, response) =>
    void response.writeHead(200, { 'set-cookie': 'session=1', 'x-kept': '1' }).end();
  const { headers } = await ask('/relay/api/a');
  assert.deepEqual([headers['set-cookie'], headers['x-kept']], [undefined, '1']);
});

test('tiny chunks of a guest cost it its connection', async () => {
  const chunks = '1\r\nx\r\n'.repeat(5000);
  const raw = await sendRaw(
    lab.guest.namespace,
    `POST /relay/api/a ${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
  ).catch((error: unknown) => String(error));
  assert.doesNotMatch(raw, / 200 /);
  assert.deepEqual(seen, []);
});
