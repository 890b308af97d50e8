import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { request as requestHttp } from 'node:http';
import { connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { openRelayLab, type RelayLab, SECRET } from '../lab/relay-lab.ts';
import { askFromGuest, connectFromGuest, type GuestRequest } from './support/guest-http.ts';

import { installingView } from './support/view-fixture.ts';

/** Relays on their whole way: a guest, the real metad, the content socket, a server with TLS. */

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}
const seen: Seen[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let lab: RelayLab;

before(async () => {
  lab = await openRelayLab(
    (request, response) => answer(request, response),
    ['gnt:relay=api', 'gnt:relay=two', 'web'],
  );
  await lab.serve();
});
after(async () => lab[Symbol.asyncDispose]());
beforeEach(async () => {
  seen.length = 0;
  lab.lines.length = 0;
  answer = echo;
  await lab.configure({ api: { url: `${lab.origin}/v1` } });
});

function echo(request: IncomingMessage, response: ServerResponse): void {
  void text(request).then(
    (body) => {
      const { method, url, headers } = request;
      seen.push({ method, url, headers, body });
      response.writeHead(200, { 'content-type': 'text/plain' }).end(`got ${body}`);
    },
    () => undefined,
  );
}

async function ask(path: string, options: GuestRequest = {}, from = lab.guest) {
  const { status, headers, body } = await askFromGuest(from.namespace, path, options);
  return { status, headers, text: body.toString('latin1') };
}

test('a guest uses the credential of a relay without its own', async () => {
  const headers = {
    ...{ authorization: 'Bearer mine', cookie: 'a=b', 'x-gnt-files': '1', 'x-api': 'one' },
    ...{ connection: 'close, x-hop', 'x-hop': '1', x_api: 'two', 'x-http-method-override': 'PUT' },
    'x-aws-ec2-metadata-token': 'mine',
  };
  const { status, text } = await ask('/relay/api/models/a%2Fb?x=1&y=%20', { headers });
  assert.deepEqual([status, text], [200, 'got ']);
  const [{ method, url, headers: sent } = { headers: {} } as Seen] = seen;
  assert.deepEqual([method, url], ['GET', '/v1/models/a%2Fb?x=1&y=%20']);
  assert.equal(sent.authorization, `Bearer ${SECRET}`);
  assert.equal(sent.host, new URL(lab.origin).host);
  assert.equal(sent['accept-encoding'], 'identity');
  assert.equal(sent['x-api'], 'one');
  const dropped = ['cookie', 'x-hop', 'x_api', 'x-gnt-files', 'x-http-method-override'];
  for (const name of [...dropped, 'x-aws-ec2-metadata-token']) assert.ok(!(name in sent), name);
});

test('each kind of credential takes its own place in the request', async () => {
  const login = Buffer.from(`me:${SECRET}`).toString('base64');
  for (const [auth, query, check] of [
    [
      { kind: 'basic', user: 'me' },
      '',
      ({ headers }: Seen) => headers.authorization === `Basic ${login}`,
    ],
    [
      { kind: 'header', name: 'x-api-key' },
      '',
      ({ headers }: Seen) => headers['x-api-key'] === SECRET,
    ],
    [
      { kind: 'query', name: 'key' },
      '?a=1',
      ({ url }: Seen) => url === `/v1/x?a=1&key=${encodeURIComponent(SECRET)}`,
    ],
    [
      { kind: 'query', name: 'key' },
      '',
      ({ url }: Seen) => url === `/v1/x?key=${encodeURIComponent(SECRET)}`,
    ],
  ] as const) {
    seen.length = 0;
    await lab.configure({ api: { url: `${lab.origin}/v1`, auth } });
    const headers = { 'x-api-key': 'mine', authorization: 'mine' };
    const { status } = await ask(`/relay/api/x${query}`, { headers });
    assert.equal(status, 200);
    const [only = { headers: {} } as Seen] = seen;
    assert.ok(check(only), JSON.stringify(only));
    assert.notEqual(only.headers.authorization, 'mine');
  }
});

test('bodies pass in both framings, and an empty one has a length', async () => {
  const body = 'x'.repeat(300_000);
  await ask('/relay/api/a', { method: 'POST', body });
  await ask('/relay/api/a', { method: 'POST', body, headers: { 'transfer-encoding': 'chunked' } });
  await ask('/relay/api/a', { method: 'POST', headers: { 'content-length': '0' } });
  assert.deepEqual(
    seen.map(({ body: got, headers }) => [
      got.length,
      headers['content-length'],
      headers['transfer-encoding'],
    ]),
    [
      [300_000, '300000', undefined],
      [300_000, undefined, 'chunked'],
      [0, '0', undefined],
    ],
  );
});

test('events of a server arrive one by one, before its answer ends', async () => {
  let next: () => void = () => undefined;
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    let count = 0;
    next = () => void response.write(`data: ${(count += 1)}\n\n`);
  };
  const incoming = await openFromGuest('/relay/api/stream');
  assert.equal(incoming.headers['content-type'], 'text/event-stream');
  for (const expected of ['data: 1\n\n', 'data: 2\n\n']) {
    next();
    const [chunk] = (await once(incoming, 'data')) as [Buffer];
    assert.equal(chunk.toString(), expected);
  }
  incoming.destroy();
});

test('a server sees the parts of a body before the guest has sent the rest', async () => {
  const parts: string[] = [];
  let ended: (text: string) => void = () => undefined;
  const complete = new Promise<string>((resolve) => (ended = resolve));
  answer = (request, response) => {
    request.on('data', (chunk: Buffer) => parts.push(chunk.toString()));
    request.on('end', () => response.end('done'));
    request.on('close', () => ended(request.complete ? 'complete' : 'cut off'));
  };
  const outgoing = requestFromGuest('/relay/api/upload', { method: 'POST' });
  outgoing.write('first');
  while (parts.length === 0) await sleep(10);
  assert.deepEqual(parts, ['first']);
  // Half of a body must not look complete to the server.
  outgoing.on('error', () => undefined).destroy();
  assert.equal(await complete, 'cut off');
});

test('only tagged instances may use a relay, unless it is for all', async () => {
  const { status, text: reason } = await ask('/relay/api/x', {}, lab.neighbour);
  assert.deepEqual([status, reason.includes('gnt:relay=api')], [404, true]);
  assert.equal((await ask('/relay/constructor/x')).status, 404);
  assert.equal((await ask('/relay/')).status, 404);
  await lab.configure({ api: { access: 'all' } });
  assert.equal((await ask('/relay/api/x', {}, lab.neighbour)).status, 200);
  assert.equal(seen.length, 1);
});

test('an installation has no relays, and required session tokens are required here too', async () => {
  await lab.serve({ metadataToken: 'required' });
  assert.equal((await ask('/relay/api/x')).status, 401);
  const ttl = { 'X-aws-ec2-metadata-token-ttl-seconds': '60' };
  const { text: token } = await ask('/latest/api/token', { method: 'PUT', headers: ttl });
  const headers = { 'X-aws-ec2-metadata-token': token };
  assert.equal((await ask('/relay/api/x', { headers })).status, 200);
  assert.equal(JSON.stringify(seen).includes(token), false);
  await lab.serve({ mode: 'install', install: installingView().install });
  assert.equal((await ask('/relay/api/x')).status, 404);
  await lab.serve();
});

test('a lost secret is named with the command that gives it again', async () => {
  lab.secrets.keepOnly({});
  const { status, text: reason } = await ask('/relay/api/x');
  assert.equal(status, 410);
  assert.match(reason, /gnt-cluster set-relay-secret api/);
  await lab.relays.give('api', SECRET);
  assert.equal((await ask('/relay/api/x')).status, 200);
});

test('a secret stays with the server for which it was given', async () => {
  const change = (url: string): Promise<unknown> =>
    lab.clusters.update(({ relays = {}, ...rest }) => ({
      ...rest,
      relays: { api: { ...relays['api'], url, auth: { kind: 'bearer' }, access: 'tagged' } },
    }));
  await change(`${lab.origin}/v2`);
  assert.equal((await ask('/relay/api/x')).status, 200);
  await change(lab.origin.replace('127.0.0.1', '127.0.0.2'));
  assert.equal((await ask('/relay/api/x')).status, 410);
  assert.equal(seen.length, 1);
});

test('only allowed methods and paths reach the server', async () => {
  await lab.configure({
    api: { url: `${lab.origin}/v1`, methods: ['POST'], paths: ['/chat', '/a/'] },
  });
  const get = await ask('/relay/api/chat');
  assert.deepEqual([get.status, get.headers.allow], [405, 'POST']);
  const post = async (path: string) => (await ask(path, { method: 'POST' })).status;
  assert.equal(await post('/relay/api/chat/completions'), 200);
  assert.equal(await post('/relay/api/a/b'), 200);
  for (const path of ['chats', 'files', '', 'a', 'chat/../files', 'CHAT'])
    assert.equal(await post(`/relay/api/${path}`), 403, path);
  assert.equal(seen.length, 2);
});

test('limits of size and time end a request in either direction', async () => {
  await lab.configure({ api: { maxBytes: 1000, timeoutS: 2 } });
  const body = 'x'.repeat(1001);
  assert.equal((await ask('/relay/api/x', { method: 'POST', body })).status, 413);
  const headers = { 'transfer-encoding': 'chunked' };
  answer = (request) => void request.resume();
  assert.equal((await ask('/relay/api/x', { method: 'POST', body, headers })).status, 413);
  answer = (_request, response) => void response.end(body);
  assert.equal((await ask('/relay/api/x')).status, 502);
  answer = (_request, response) => {
    for (let count = 0; count < 20; count += 1) response.write('y'.repeat(100));
  };
  await assert.rejects(ask('/relay/api/x'), /aborted|socket hang up/);
  answer = () => undefined;
  assert.equal((await ask('/relay/api/x')).status, 504);
  answer = (_request, response) => void response.write('for ever');
  await assert.rejects(ask('/relay/api/x'), /aborted|socket hang up/);
  const expected = [
    'the answer is longer than 1000 bytes',
    'the answer is longer than 1000 bytes',
    'The operation was aborted due to timeout',
    'the request took longer than 2 s',
  ];
  const reasons = (): readonly unknown[] =>
    lab.lines
      .filter(({ event }) => event === 'relay.failed')
      .map(reasonOf)
      .slice(-4);
  // The guest's connection ends before the node logs the reason.
  for (let tries = 0; tries < 100 && reasons().at(-1) !== expected.at(-1); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(reasons(), expected);
});

test('an answer before the end of a body leaves the connection open for the rest', async (t) => {
  await lab.configure({ api: { maxBytes: 1000 } });
  const socket = connect(lab.channel.contentSocket);
  t.after(() => socket.destroy());
  const path = `/v1/instances/${lab.uuid}/relay/api/x`;
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2000\r\n\r\nfirst`,
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  assert.match(head.toString(), /^HTTP\/1.1 413 /);
  // A closed connection would refuse the first or the second write.
  for (let piece = 0; piece < 5; piece += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write('x'.repeat(100));
  }
  assert.deepEqual([socket.errored, socket.readableEnded], [null, false]);
});

test('an instance beyond its rate is told when to come back, and no other instance is', async () => {
  await lab.configure({ two: { rate: 2, access: 'all' } });
  const codes = [];
  for (let count = 0; count < 3; count += 1) codes.push(await ask('/relay/two/x'));
  assert.deepEqual(
    codes.map(({ status }) => status),
    [200, 200, 429],
  );
  assert.equal(codes[2]?.headers['retry-after'], '30');
  assert.equal((await ask('/relay/two/x', {}, lab.neighbour)).status, 200);
});

test('one instance with many open requests leaves room for its neighbours', async () => {
  await lab.configure({ api: { access: 'all' } });
  answer = (request, response) => {
    if (request.url === '/quick') response.end('quick');
  };
  const open = Array.from({ length: 16 }, () => requestFromGuest('/relay/api/hang', {}));
  for (const one of open) one.on('error', () => undefined).end();
  while (lab.channel.log.length === 0) await sleep(10);
  let own = await ask('/relay/api/quick');
  for (let count = 0; own.status === 200 && count < 100; count += 1)
    own = await ask('/relay/api/quick');
  assert.equal(own.status, 503);
  assert.equal((await ask('/relay/api/quick', {}, lab.neighbour)).text, 'quick');
  for (const one of open) one.destroy();
  while ((await ask('/relay/api/quick')).status !== 200) await sleep(10);
});

test('the log of the node has a line for each request, without query and secret', async () => {
  await ask('/relay/api/v?token=guest', { method: 'POST', body: 'four' });
  const [line] = lab.lines.filter(({ event }) => event === 'relay.request');
  const { tookMs, ...rest } = line?.fields as Record<string, unknown>;
  assert.equal(typeof tookMs, 'number');
  assert.deepEqual(rest, {
    ...{ uuid: lab.uuid, relay: 'api', method: 'POST', path: '/v', status: 200 },
    ...{ sent: 4, received: 8, failure: undefined },
  });
  assert.equal(/guest|sk-test/.test(JSON.stringify(lab.lines)), false);
  assert.equal(lab.channel.log.includes(SECRET), false);
  const [count] = lab.relays.counts();
  assert.equal(count?.relay, 'api');
});

test('a server that cannot be reached gives 502, and its address only to the log', async () => {
  await lab.configure({ api: { url: 'https://127.0.0.1:9/' } });
  const { status, text: reason } = await ask('/relay/api/x');
  assert.deepEqual(
    [status, reason],
    [502, "the server of relay 'api' cannot be reached (ECONNREFUSED)\n"],
  );
  await lab.clusters.update((cluster) => ({
    ...cluster,
    imageCa: undefined,
    relays: { api: { url: lab.origin, auth: { kind: 'bearer' }, access: 'tagged' } },
  }));
  await lab.relays.give('api', SECRET);
  assert.equal((await ask('/relay/api/x')).status, 502);
  assert.equal(seen.length, 0);
});

function reasonOf({ fields }: { readonly fields: object }): unknown {
  return 'reason' in fields ? fields.reason : undefined;
}

function requestFromGuest(path: string, options: { readonly method?: string }): ClientRequest {
  const createConnection = () => connectFromGuest(lab.guest.namespace);
  return requestHttp({ host: '169.254.169.254', path, createConnection, ...options });
}

async function openFromGuest(path: string): Promise<IncomingMessage> {
  const outgoing = requestFromGuest(path, {}).end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  return incoming;
}
