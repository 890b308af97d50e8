import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { createMetrics } from '../../../metad/control/metrics.ts';
import { Audit } from '../../../metad/http/audit.ts';
import { GuestHandler } from '../../../metad/http/guest-handler.ts';
import { GuestServer } from '../../../metad/http/guest-server.ts';
import { sendText } from '../../../metad/http/reply.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const HOST = 'Host: 169.254.169.254\r\n';
const userData = Buffer.from(Array.from({ length: 4096 }, (_, index) => index & 255));
const instance = new Instance(
  parseView(
    exampleView({ userData: userData.toString('base64'), metadata: { city: 'Zürich 🚲' } }),
  ),
  systemClock,
);
const metrics = createMetrics(() => [instance]);
const lines: Record<string, unknown>[] = [];
const logger = {
  ...silentLogger,
  info: (event: string, fields: object = {}) => void lines.push({ event, ...fields }),
};

let directory: string;
let guests: GuestServer;
let server: Server;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-guest-server-'));
  const handler = new GuestHandler({
    events: new EventLog(0),
    serveStream: ({ response }) => sendText(response, 502, 'none'),
    serveIdentity: async () => undefined,
    serveCredentials: async () => undefined,
    serveRelay: ({ response }) => void response.writeHead(404).end(),
    metrics,
    audit: new Audit(logger, systemClock),
    clock: systemClock,
  });
  guests = new GuestServer(handler, metrics);
  server = createServer({ allowHalfOpen: true }, (socket) => guests.accept(instance, socket, true));
  server.listen(join(directory, 'socket'));
  await once(server, 'listening');
});
after(async () => {
  server.close();
  guests[Symbol.dispose]();
  await rm(directory, { recursive: true });
});

/** Sends bytes on one connection, and returns the answer until the service closes it. */
async function exchange(request: string): Promise<Buffer> {
  const socket = connect(join(directory, 'socket'));
  socket.write(request);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function ask(start: string, headers = ''): Promise<{ head: string; body: Buffer }> {
  const answer = await exchange(`${start} HTTP/1.1\r\n${HOST}${headers}Connection: close\r\n\r\n`);
  const end = answer.indexOf('\r\n\r\n');
  return { head: answer.subarray(0, end).toString(), body: answer.subarray(end + 4) };
}

test('a forwarding header is seen after any number of other headers', async () => {
  const filler = 'a:\r\n'.repeat(1500);
  assert.match((await ask('GET /', filler)).head, /^HTTP\/1\.1 200 /);
  assert.match((await ask('GET /', `${filler}X-Forwarded-For: 1\r\n`)).head, /^HTTP\/1\.1 403 /);
  assert.match((await ask('GET /', `${filler}${HOST}`)).head, /^HTTP\/1\.1 400 /);
});

test('a POST without a body is treated as an empty body', async () => {
  assert.match((await ask('POST /ganeti/latest/write')).head, /^HTTP\/1\.1 204 /);
  assert.match((await ask('POST /ganeti/latest/install/events')).head, /^HTTP\/1\.1 404 /);
  assert.match((await ask('POST /ganeti/latest/ready')).head, /^HTTP\/1\.1 204 /);
  assert.equal(instance.toHost.waitingBytes, 0);
});

test('a small body arrives byte for byte, with its length', async () => {
  const { head, body } = await ask('GET /latest/user-data');
  assert.deepEqual(body, userData);
  assert.match(head, /\r\nContent-Length: 4096(\r\n|$)/);
  const text = (await ask('GET /ganeti/latest/meta_data.json')).body.toString();
  assert.equal((JSON.parse(text) as { metadata: { city: string } }).metadata.city, 'Zürich 🚲');
});

test('HEAD has the headers of GET and no body', async () => {
  const withoutDate = (head: string): string => head.replace(/Date: .*\r\n/, '');
  const get = await ask('GET /latest/user-data');
  const head = await ask('HEAD /latest/user-data');
  assert.equal(withoutDate(head.head), withoutDate(get.head));
  assert.equal(head.body.length, 0);
});

test('answers are counted and audited whether they are whole at once or wait', async () => {
  lines.length = 0;
  await ask('GET /latest/meta-data/mac?x=secret');
  await ask('GET /ganeti/latest/read?wait=1');
  const audited = lines.map(({ path, status }) => `${String(path)} ${String(status)}`);
  assert.deepEqual(audited, ['/latest/meta-data/mac 200', '/ganeti/latest/read 204']);
  const text = await metrics.render();
  assert.match(text, /gnt_metad_requests_total\{dialect="ganeti",status="204"\} [1-9]/);
  assert.match(text, /gnt_metad_request_seconds_bucket\{le="0.5"\} ([1-9]\d*)/);
  const [, inTwo] = /le="2"\} (\d+)/.exec(text) ?? [];
  const [, inHalf] = /le="0.5"\} (\d+)/.exec(text) ?? [];
  assert.equal(Number(inTwo), Number(inHalf) + 1, 'the one that waited');
});

test('pipelined requests are answered in order when the first of them waits', async () => {
  const text = (
    await exchange(
      `GET /ganeti/latest/read?wait=1 HTTP/1.1\r\n${HOST}\r\n` +
        `GET /latest/meta-data/mac HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    )
  ).toString();
  assert.match(text, /^HTTP\/1\.1 204 [^]*HTTP\/1\.1 200 [^]*52:54:00:e1:a3:45$/);
});

/** Polls a condition; a server's socket has no event for a read. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Opens a connection whose request waits for another view. */
async function openWaiting(t: TestContext): Promise<Socket> {
  const { head } = await ask(`GET ${WAITED}`);
  const etag = /^etag: "(.*)"$/im.exec(head)?.[1] ?? '';
  await until(() => instance.sockets.size === 0);
  const socket = connect(join(directory, 'socket'));
  t.after(() => socket.destroy());
  socket.setEncoding('latin1');
  socket.write(
    `GET ${WAITED}?wait_for_change=true&timeout_sec=60&last_etag=${etag} HTTP/1.1\r\n${HOST}\r\n`,
  );
  await until(() => instance.unanswered === 1);
  return socket;
}

const WAITED = '/ganeti/latest/meta_data.json';
const OTHER = `GET /latest/meta-data/mac HTTP/1.1\r\n${HOST}\r\n`;
const MAC = '52:54:00:e1:a3:45';

function changeView(): void {
  const { revision } = instance.view;
  instance.replaceView(
    parseView(exampleView({ revision: revision + 1, metadata: { city: `city ${revision}` } })),
  );
}

test('a waiting connection has no parser, is answered at a change, and accepts another request', async (t) => {
  const socket = await openWaiting(t);
  const [held] = instance.sockets as ReadonlySet<Socket & { readonly parser?: unknown }>;
  assert.equal(held?.parser ?? null, null);
  let text = '';
  socket.on('data', (more: string) => (text += more));
  changeView();
  await until(() => text.includes('city '));
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: keep-alive\r\n/);
  await until(() => instance.unanswered === 0);
  text = '';
  socket.write(OTHER);
  await until(() => text.endsWith(MAC));
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
});

test('a request behind a waiting request is answered after it', async (t) => {
  const socket = await openWaiting(t);
  let text = '';
  socket.on('data', (more: string) => (text += more));
  socket.write(OTHER);
  await until(() => instance.unanswered === 2);
  assert.equal(text, '');
  changeView();
  await until(() => text.endsWith(MAC));
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*city [^]*HTTP\/1\.1 200 OK\r\n/);
});

for (const how of ['destroy', 'end'] as const)
  test(`a client that disconnects while its request waits leaves nothing behind: ${how}`, async (t) => {
    const socket = await openWaiting(t);
    socket.resume();
    socket[how]();
    await until(() => instance.sockets.size === 0);
    assert.equal(instance.unanswered, 0);
    changeView();
  });

test('a request for a tree that cannot be rendered gets 500, also when it would wait', async (t) => {
  const good = instance.view;
  t.after(() => instance.replaceView(good));
  instance.replaceView({ ...good, createdAtMs: Number.NaN });
  for (const query of ['', '?wait_for_change=', '?wait_for_change=true&last_etag=a'])
    assert.match((await ask(`GET /latest/meta-data/mac${query}`)).head, /^HTTP\/1\.1 500 /);
});

/** Endings of a request that hide another request from one of two parsers. */
const HIDING: Readonly<Record<string, string>> = {
  'a body of stated length': `Content-Length: ${OTHER.length}\r\n\r\n${OTHER}`,
  'a chunked body': `Transfer-Encoding: chunked\r\n\r\n${OTHER.length.toString(16)}\r\n${OTHER}\r\n0\r\n\r\n`,
  'both lengths': `Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${OTHER}`,
  'two lengths': `Content-Length: 0\r\nContent-Length: ${OTHER.length}\r\n\r\n${OTHER}`,
  'a length with a sign': `Content-Length: +0\r\n\r\n${OTHER}`,
  'a list of lengths': `Content-Length: 0, 0\r\n\r\n${OTHER}`,
  'an unknown coding': `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${OTHER}`,
  'chunked and another coding': `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${OTHER}`,
  'a blank before the colon': `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${OTHER}`,
  'a folded header': `X: a\r\n Content-Length: ${OTHER.length}\r\n\r\n${OTHER}`,
  'line ends without CR': `Content-Length: ${OTHER.length}\n\n${OTHER}`,
};

for (const [name, hidden] of Object.entries(HIDING))
  for (const query of ['', '?wait_for_change=true&timeout_sec=1&last_etag='])
    test(`a request hidden by ${name} is not answered${query && ', also while another request waits'}`, async () => {
      const { head } = await ask(`GET ${WAITED}`);
      const etag = query && (/^etag: "(.*)"$/im.exec(head)?.[1] ?? assert.fail());
      const socket = connect(join(directory, 'socket'));
      socket.write(`GET ${WAITED}${query}${etag} HTTP/1.1\r\n${HOST}${hidden}`);
      let text = '';
      socket.setEncoding('latin1').on('data', (more: string) => (text += more));
      const isClosed = once(socket, 'close').then(
        () => true,
        () => true,
      );
      await Promise.race([isClosed, until(() => text.includes('HTTP/1.1 '))]);
      await Promise.race([isClosed, new Promise((resolve) => setTimeout(resolve, 50))]);
      socket.destroy();
      assert.ok(!text.includes(MAC), text);
    });

/** More than are woken in one turn. */
const MANY = 50;

async function openMany(t: TestContext): Promise<readonly { text: string }[]> {
  await until(() => instance.sockets.size === 0 && instance.unanswered === 0);
  const { head } = await ask(`GET ${WAITED}`);
  const etag = /^etag: "(.*)"$/im.exec(head)?.[1] ?? '';
  await until(() => instance.sockets.size === 0);
  const heard: { text: string }[] = [];
  for (let at = 0; at < MANY; at++) {
    const socket = connect(join(directory, 'socket'));
    t.after(() => socket.destroy());
    const one = { text: '' };
    heard.push(one);
    socket.setEncoding('latin1').on('data', (more: string) => (one.text += more));
    socket.on('error', () => (one.text += 'reset'));
    socket.write(
      `GET ${WAITED}?wait_for_change=true&timeout_sec=60&last_etag=${etag} HTTP/1.1\r\n${HOST}\r\n`,
    );
    await until(() => instance.unanswered === at + 1);
  }
  return heard;
}

function isAnswered({ text }: { readonly text: string }): boolean {
  return text.startsWith('HTTP/1.1 200 ') && text.includes('city ');
}

test('a change answers all waiting requests, at most 16 in one turn', async (t) => {
  const heard = await openMany(t);
  const before: number[] = [];
  changeView();
  while (instance.unanswered > 0) {
    before.push(instance.unanswered);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until(() => heard.every(isAnswered));
  const most = Math.max(...before.map((count, at) => count - (before[at + 1] ?? 0)));
  assert.ok(before[0] === MANY && most <= 16, `${before.join(' ')}`);
});

test('requests that wait when the connection limit is lowered are answered', async (t) => {
  const heard = await openMany(t);
  const { view } = instance;
  t.after(() => instance.replaceView(view));
  const limits = { ...view.limits, connections: 1 };
  instance.replaceView({ ...parseView(exampleView({ metadata: { city: 'city less' } })), limits });
  await until(() => heard.every(({ text }) => text !== ''));
  assert.deepEqual(
    heard.filter((one) => !isAnswered(one)),
    [],
  );
  assert.equal(instance.isKeptOut(), false);
});

test('closing all connections ends the requests that a change is answering', async (t) => {
  await openMany(t);
  changeView();
  instance.closeConnections();
  await until(() => instance.sockets.size === 0);
  assert.equal(instance.unanswered, 0);
});
