import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { ChannelLab } from '../support/channel-lab.ts';
import type { Guest } from '../support/channel-lab.ts';
import { askFromGuest, connectFromGuest, sendRaw } from '../support/guest-http.ts';
import { exampleView } from '../support/view-fixture.ts';

const greedy = exampleView();
const modest = exampleView({
  name: 'web2.example.com',
  uuid: '00000000-1f3d-49e9-b2b7-000000000002',
  nics: [],
  channel: { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: '169.254.0.2', hopLimit: 1 },
});
const HOST = 'Host: 169.254.169.254\r\n';

let lab: ChannelLab;
let guest: Guest;
let neighbour: Guest;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(greedy.channel);
  neighbour = await lab.addGuest(modest.channel);
  for (const view of [greedy, modest]) assert.equal((await lab.put(view)).status, 204);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

let revision = 1;
async function setLimits(limits: Partial<typeof greedy.limits>): Promise<void> {
  revision++;
  await lab.put({ ...greedy, revision, limits: { ...greedy.limits, ...limits } });
}

async function connected(namespace: string): Promise<Socket> {
  const socket = connectFromGuest(namespace);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Waits until metad has noticed the end of earlier connections. */
async function allClosed(): Promise<void> {
  for (;;) {
    const { body } = await lab.control('GET', '/metrics');
    if (/^gnt_metad_connections 0$/m.test(body.toString())) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('requests beyond the rate get 429 with Retry-After, and the neighbour’s requests get 200', async () => {
  await setLimits({ requestsPerSecond: 1, burst: 5 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const statuses = [];
  let retryAfter: string | undefined;
  for (let count = 0; count < 10; count++) {
    const answer = await askFromGuest(guest.namespace, '/');
    statuses.push(answer.status);
    retryAfter ??= answer.headers['retry-after'];
    assert.equal((await askFromGuest(neighbour.namespace, '/')).status, 200);
  }
  assert.ok(statuses.filter((status) => status === 200).length >= 5);
  assert.ok(statuses.includes(429), statuses.join());
  assert.match(retryAfter ?? '', /^[1-9]\d*$/);
  await setLimits({});
});

test('headers of more than 8 KiB get 431', async () => {
  const { status } = await askFromGuest(guest.namespace, '/', { headers: { x: 'a'.repeat(8200) } });
  assert.equal(status, 431);
  const within = await askFromGuest(guest.namespace, '/', { headers: { x: 'a'.repeat(7900) } });
  assert.equal(within.status, 200);
  const text = await sendRaw(guest.namespace, `GET /${'a'.repeat(9000)} HTTP/1.1\r\n${HOST}\r\n`);
  assert.match(text, /^HTTP\/1\.1 431 /);
});

test('a second request on a connection gets 431 as well', async () => {
  const text = await sendRaw(
    guest.namespace,
    `GET / HTTP/1.1\r\n${HOST}\r\nGET / HTTP/1.1\r\n${HOST}x: ${'a'.repeat(9000)}\r\n\r\n`,
    (received) => received.includes('431'),
  );
  assert.match(text, /^HTTP\/1\.1 200 /);
});

test('the connection after the 64th is closed, and a new connection is accepted when one of the 64 ends', async () => {
  const sockets: Socket[] = [];
  for (let count = 0; count < 64; count++) sockets.push(await connected(guest.namespace));
  await askFromGuest(neighbour.namespace, '/');
  await assert.rejects(askFromGuest(guest.namespace, '/'));
  const [first] = sockets;
  assert.ok(first);
  first.destroy();
  // Until then metad closes new ones.
  let status: number | null = null;
  while (status === null)
    status = await askFromGuest(guest.namespace, '/').then(
      (answer) => answer.status,
      () => null,
    );
  assert.equal(status, 200);
  for (const socket of sockets) socket.destroy();
});

test('a new connection at the limit closes the oldest idle connection that was answered', async () => {
  await allClosed();
  const sockets: Socket[] = [];
  for (let count = 0; count < 64; count++) {
    const socket = await connected(guest.namespace);
    sockets.push(socket);
    // The first one sends nothing, so it counts as slow, not idle.
    if (count === 0) continue;
    socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await once(socket, 'data');
  }
  const ended = once(sockets[1] ?? assert.fail(), 'end');
  assert.equal((await askFromGuest(guest.namespace, '/')).status, 200);
  await ended;
  assert.equal(sockets[0]?.readableEnded, false);
  for (const socket of sockets) socket.destroy();
});

test('headers that take more than ten seconds end the connection with 408', async () => {
  const startedAt = performance.now();
  const text = await sendRaw(guest.namespace, 'GET / HTTP/1.1\r\nHos');
  const elapsedS = (performance.now() - startedAt) / 1000;
  assert.match(text, /^HTTP\/1\.1 408 /);
  // The upper bound depends on the host; a hanging request would get no 408.
  assert.ok(elapsedS > 9, String(elapsedS));
});

test('malformed requests and smuggling shapes get a status from 400 to 409 or nothing, and metad still answers', async () => {
  const requests = [
    'GET /\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Content-Length: -4\r\n\r\nabcd`,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `GET / HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`,
    `GET / HTTP/1.1\r\n${HOST}X\0: a\r\n\r\n`,
    `GET / HTTP/9.9\r\n${HOST}\r\n`,
    `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03`,
    `GET\t/ HTTP/1.1\r\n${HOST}\r\n`,
    `GET /a b HTTP/1.1\r\n${HOST}\r\n`,
  ];
  for (const request of requests) {
    const text = await sendRaw(guest.namespace, request);
    assert.match(text, /^(HTTP\/1\.1 40[0-9] |$)/, JSON.stringify([request, text]));
  }
  const queue = await lab.control('GET', `/v1/instances/${greedy.uuid}/queue`);
  assert.equal(queue.status, 204);
  assert.equal((await askFromGuest(guest.namespace, '/')).status, 200);
});

test('CONNECT is refused', async () => {
  const text = await sendRaw(guest.namespace, `CONNECT 10.0.0.1:80 HTTP/1.1\r\n${HOST}\r\n`);
  assert.match(text, /^HTTP\/1\.1 405 /);
});

test('pipelined requests are answered in order', async () => {
  const one = `GET /latest/meta-data/hostname HTTP/1.1\r\n${HOST}\r\n`;
  const two = `GET /latest/meta-data/mac HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
  const text = await sendRaw(guest.namespace, one + two);
  assert.ok(text.indexOf('web1.example.com') < text.indexOf('52:54:00:e1:a3:45'));
});

test('every request leaves an audit line with instance, path and status, and no value', async () => {
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await askFromGuest(guest.namespace, '/latest/user-data?secret=hunter2', {
    headers: { authorization: 'hunter3' },
  });
  const line = await lab.logLine('/latest/user-data"');
  const record = JSON.parse(line) as Record<string, unknown>;
  assert.equal(record.instance, 'web1.example.com');
  assert.equal(record.status, 200);
  assert.doesNotMatch(lab.log, /hunter|S3CRET|KEY123/);
});

test('a request that the parser refuses is audited with instance, status and reason, and without its content', async () => {
  const shapes = [
    ['GET / HTTP/9.9\r\nX: hunter4\r\n\r\n', 400, 'HPE_INVALID_VERSION'],
    [`GET / HTTP/1.1\r\nX: ${'hunter4'.repeat(2000)}\r\n\r\n`, 431, 'HPE_HEADER_OVERFLOW'],
    [`CONNECT hunter4:80 HTTP/1.1\r\n${HOST}\r\n`, 405, 'CONNECT'],
  ] as const;
  lab.takeLog();
  for (const [bytes, status, reason] of shapes) {
    await sendRaw(neighbour.namespace, bytes);
    const line = JSON.parse(await lab.logLine(`"reason":"${reason}"`)) as Record<string, unknown>;
    assert.equal(line.instance, modest.name);
    assert.equal(line.status, status);
  }
  assert.doesNotMatch(lab.log, /hunter4/);
});

test('audit lines for refused requests are bounded', async () => {
  lab.takeLog();
  const bad = Array.from({ length: 600 }, () => sendRaw(guest.namespace, 'GET / HTTP/9.9\r\n\r\n'));
  await Promise.allSettled(bad);
  const lines = lab.takeLog().split('\n');
  const count = lines.filter((line) => line.includes('http.refused')).length;
  assert.ok(count > 0 && count <= 540, `${count} lines`);
});

test('metrics count requests by dialect and status, and refusals by reason', async () => {
  const { body } = await lab.control('GET', '/metrics');
  const text = body.toString();
  assert.match(text, /gnt_metad_requests_total\{dialect="ec2",status="200"\} [1-9]/);
  assert.match(text, /gnt_metad_refused_total\{reason="rate"\} [1-9]/);
  assert.match(text, /gnt_metad_refused_total\{reason="connections"\} [1-9]/);
  assert.match(text, /gnt_metad_instances 2/);
});
