import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chown } from 'node:fs/promises';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { closed, HOST_LINE as HOST, useFloodLab, waitUntil } from './support/flood-lab.ts';
import { askFromGuest, sendRaw } from './support/guest-http.ts';

/** Floods of requests by one guest. */
const flood = useFloodLab();
const GET = `GET /latest/meta-data/mac HTTP/1.1\r\n${HOST}\r\n`;
const WAIT = `GET /ganeti/latest/meta_data.json?wait_for_change=true HTTP/1.1\r\n${HOST}\r\n`;

function answersIn(text: string): number {
  return text.split('HTTP/1.1 200 ').length - 1;
}

test('sixteen requests sent ahead on one connection are answered in order', async () => {
  const text = await sendRaw(
    flood.guest.namespace,
    GET.repeat(16),
    (received) => answersIn(received) === 16,
  );
  assert.equal(answersIn(text), 16);
  assert.equal(await flood.refusals('unanswered'), 0);
});

test('a guest that sends more than 16 requests ahead is disconnected, and at most 16 requests are read', async () => {
  const before = await flood.refusals('unanswered');
  flood.lab.takeLog();
  const text = await sendRaw(flood.guest.namespace, GET.repeat(1000)).catch(() => '');
  assert.ok(answersIn(text) <= 16, `${answersIn(text)} answers`);
  assert.equal(await flood.refusals('unanswered'), before + 1);
  const audited = flood.lab
    .takeLog()
    .split('\n')
    .filter((line) => line.includes('http.request'));
  assert.ok(audited.length <= 16, `${audited.length} requests came in`);
});

test('waiting requests count against the limits of unanswered requests, per connection and per guest', async () => {
  const before = await flood.refusals('unanswered');
  const one = await flood.connect();
  one.write(WAIT.repeat(17));
  await closed(one);
  assert.equal(await flood.refusals('unanswered'), before + 1);
  await sleep(150);
  // 64 connections and 32 further requests: the seventh connection exceeds the limit.
  const sockets = await Promise.all(Array.from({ length: 6 }, () => flood.connect()));
  for (const socket of sockets) socket.write(WAIT.repeat(16));
  await waitUntil(async () => (await flood.unanswered()) === 96);
  const seventh = await flood.connect();
  seventh.write(WAIT);
  await closed(seventh);
  assert.equal(await flood.refusals('unanswered'), before + 2);
  for (const socket of sockets) socket.destroy();
  await waitUntil(async () => (await flood.unanswered()) === 0);
});

test('a disconnected guest is kept out for a growing time, and its neighbour is served', async () => {
  const offend = async (): Promise<number> => {
    const socket = await flood.connect();
    socket.write(GET.repeat(100));
    await closed(socket);
    const startedAtMs = performance.now();
    for (;;) {
      const isIn = await askFromGuest(flood.guest.namespace, '/').then(
        ({ status }) => status === 200,
        () => false,
      );
      if (isIn) return performance.now() - startedAtMs;
      await sleep(10);
    }
  };
  const { namespace: neighbour } = await flood.addNeighbour();
  const first = await offend();
  assert.ok(first > 50, `${first} ms`);
  const second = await offend();
  assert.ok(second > 150, `${second} ms`);
  const third = offend();
  assert.equal((await askFromGuest(neighbour, '/')).status, 200);
  assert.ok((await third) > 350);
});

test('refusals of requests beyond the rate are delayed', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const before = await flood.refusals('rate');
  const sockets = await Promise.all(Array.from({ length: 32 }, () => flood.connect()));
  const until = performance.now() + 500;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < until) {
        socket.write(GET);
        await once(socket, 'data');
      }
      socket.destroy();
    }),
  );
  const count = (await flood.refusals('rate')) - before;
  assert.ok(count > 32 && count <= 32 * 11, `${count} refusals`);
});

test('requests that the parser refuses count against the rate limit, and further connections are reset', async () => {
  const limits = { requestsPerSecond: 0.01, burst: 4, connections: 64 };
  assert.equal((await flood.lab.put({ ...flood.view, revision: 2, limits })).status, 204);
  const refused = [
    ['GET / HTTP/9.9\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`, 400],
    [`CONNECT 10.0.0.1:80 HTTP/1.1\r\n${HOST}\r\n`, 405],
    [`GET / HTTP/1.1\r\nX: ${'a'.repeat(9000)}\r\n\r\n`, 431],
  ] as const;
  for (const [bytes, status] of refused)
    assert.match(
      await sendRaw(flood.guest.namespace, bytes),
      new RegExp(`^HTTP/1\\.1 ${status} [^]*Connection: close`),
    );
  const count = async (): Promise<number> =>
    (await flood.refusals('rate')) + (await flood.refusals('kept-out'));
  const before = await count();
  // The second one is not read, unless this process was so slow that it may come again.
  for (const [bytes] of refused.slice(0, 2))
    await assert.rejects(sendRaw(flood.guest.namespace, bytes), /ECONNRESET|EPIPE/);
  assert.equal(await count(), before + 2);
});

test('header lines count against the rate limit', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 1, burst: 30, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const many = `GET / HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(1500)}\r\n`;
  const text = await sendRaw(
    flood.guest.namespace,
    many.repeat(2),
    (received) => received.split('HTTP/1.1').length > 2,
  );
  assert.match(text, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 429 [^]*Connection: close/);
  await assert.rejects(askFromGuest(flood.guest.namespace, '/'), 'and nothing more for a while');
});

test('an instance has four image and package streams at a time, and the next request gets 503', async () => {
  let open = 0;
  let most = 0;
  const node = createServer((_request, response) => {
    most = Math.max(most, ++open);
    response.on('close', () => open--);
    response.writeHead(200, { 'content-length': 1 << 30 });
    response.flushHeaders();
  });
  node.listen(flood.lab.contentSocket);
  await once(node, 'listening');
  await chown(flood.lab.contentSocket, 65_534, 65_534);
  const socket = await flood.connect();
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  const requests = ['image', 'package', 'os-install-package', 'image'].map(
    (name) => `GET /ganeti/latest/os/${name} HTTP/1.1\r\n${HOST}\r\n`,
  );
  socket.write(requests.join('').repeat(3));
  await waitUntil(async () => Promise.resolve(open === 4));
  const { status, headers } = await askFromGuest(flood.guest.namespace, '/ganeti/latest/os/image');
  assert.deepEqual([status, headers['retry-after'], most], [503, '1', 4]);
  socket.destroy();
  await waitUntil(async () => Promise.resolve(open === 0));
  const again = await flood.connect();
  again.write(requests[0] ?? '');
  await waitUntil(async () => Promise.resolve(open === 1));
  again.destroy();
  node.closeAllConnections();
  node.close();
});

test('a guest that floods requests gets at most 1000 audit lines', async () => {
  const unlimited = { requestsPerSecond: 1e6, burst: 1e6, connections: 64 };
  assert.equal(
    (await flood.lab.put({ ...flood.view, revision: 2, limits: unlimited })).status,
    204,
  );
  flood.lab.takeLog();
  const sockets = await Promise.all(Array.from({ length: 8 }, () => flood.connect()));
  await Promise.all(
    sockets.map(async (socket) => {
      for (let round = 0; round < 100; round++) {
        socket.write(GET.repeat(8));
        for (let answers = 0; answers < 8;)
          answers += answersIn(String((await once(socket, 'data'))[0]));
      }
      socket.destroy();
    }),
  );
  const lines = flood.lab
    .takeLog()
    .split('\n')
    .filter((line) => line.includes('http.request'));
  assert.ok(lines.length >= 500 && lines.length < 1000, `${lines.length} lines of 6400 requests`);
});
