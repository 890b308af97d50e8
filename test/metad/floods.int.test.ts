import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chown } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { askFromGuest, connectFromGuest, sendRaw } from './support/guest-http.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { installingView } from './support/view-fixture.ts';

/**
 * What one guest can do a million times, and what metad lets it do. A guest for each test, since
 * who was cut is kept out for a while.
 */

const HOST = 'Host: 169.254.169.254\r\n';
const GET = `GET /latest/meta-data/mac HTTP/1.1\r\n${HOST}\r\n`;
const WAIT = `GET /ganeti/latest/meta_data.json?wait_for_change=true HTTP/1.1\r\n${HOST}\r\n`;

let lab: ChannelLab;
let guest: Guest;
let view: InstanceView;
const guestNamespaces: string[] = [];

before(async () => {
  lab = await ChannelLab.create();
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});
beforeEach(async () => {
  const index = guestNamespaces.length + 1;
  const channel = {
    device: `gnt.com.${index}`,
    mac: `52:54:00:e1:a3:${(0x10 + index).toString(16)}`,
    ip: `169.254.3.${index}`,
    hopLimit: 1,
  };
  const uuid = `00000000-1f3d-49e9-b2b7-0000000000${index + 10}`;
  guest = await lab.addGuest(channel);
  view = installingView({ uuid, name: `web${index}.example.com`, nics: [], channel });
  assert.equal((await lab.put(view)).status, 204);
  guestNamespaces.push(guest.namespace);
});

async function refusals(reason: string): Promise<number> {
  const { body } = await lab.control('GET', '/metrics');
  const line = new RegExp(`^gnt_metad_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm');
  return Number(line.exec(body.toString())?.[1] ?? 0);
}

/** Not `once`: a reset is an error too. */
async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
}

async function unanswered(): Promise<number> {
  const { body } = await lab.control('GET', '/metrics');
  return Number(/^gnt_metad_unanswered_requests (\d+)$/m.exec(body.toString())?.[1]);
}

async function waitUntil(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(20);
}

function answersIn(text: string): number {
  return text.split('HTTP/1.1 200 ').length - 1;
}

async function connected(): Promise<Socket> {
  const socket = connectFromGuest(guest.namespace);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

test('sixteen requests sent ahead on one connection are answered in order', async () => {
  const text = await sendRaw(
    guest.namespace,
    GET.repeat(16),
    (received) => answersIn(received) === 16,
  );
  assert.equal(answersIn(text), 16);
  assert.equal(await refusals('unanswered'), 0);
});

test('who sends more requests ahead is cut off, and nothing of the rest is looked at', async () => {
  const before = await refusals('unanswered');
  lab.takeLog();
  const text = await sendRaw(guest.namespace, GET.repeat(1000)).catch(() => '');
  assert.ok(answersIn(text) <= 16, `${answersIn(text)} answers`);
  assert.equal(await refusals('unanswered'), before + 1);
  const audited = lab
    .takeLog()
    .split('\n')
    .filter((line) => line.includes('http.request'));
  assert.ok(audited.length <= 16, `${audited.length} requests came in`);
});

test('waits count among the requests under way, of a connection and of all its connections', async () => {
  const before = await refusals('unanswered');
  const one = await connected();
  one.write(WAIT.repeat(17));
  await closed(one);
  assert.equal(await refusals('unanswered'), before + 1);
  await sleep(150);
  // 64 connections and 32 more requests than those: the seventh connection goes beyond.
  const sockets = await Promise.all(Array.from({ length: 6 }, connected));
  for (const socket of sockets) socket.write(WAIT.repeat(16));
  await waitUntil(async () => (await unanswered()) === 96);
  const seventh = await connected();
  seventh.write(WAIT);
  await closed(seventh);
  assert.equal(await refusals('unanswered'), before + 2);
  for (const socket of sockets) socket.destroy();
  await waitUntil(async () => (await unanswered()) === 0);
});

test('a guest that was cut off gets no connection for a while, which grows, and its neighbour does', async () => {
  const offend = async (): Promise<number> => {
    const socket = await connected();
    socket.write(GET.repeat(100));
    await closed(socket);
    const startedAtMs = performance.now();
    for (;;) {
      const isIn = await askFromGuest(guest.namespace, '/').then(
        ({ status }) => status === 200,
        () => false,
      );
      if (isIn) return performance.now() - startedAtMs;
      await sleep(10);
    }
  };
  const neighbour = guestNamespaces[0] ?? assert.fail();
  const first = await offend();
  assert.ok(first > 50, `${first} ms`);
  const second = await offend();
  assert.ok(second > 150, `${second} ms`);
  const third = offend();
  assert.equal((await askFromGuest(neighbour, '/')).status, 200);
  assert.ok((await third) > 350);
});

test('refusals of requests beyond the rate are few, however many are asked for', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const before = await refusals('rate');
  const sockets = await Promise.all(Array.from({ length: 32 }, connected));
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
  const count = (await refusals('rate')) - before;
  assert.ok(count > 32 && count <= 32 * 11, `${count} refusals`);
});

/** Posts that are refused with their bodies, of a guest that reads each answer before it goes on. */
const POST = `POST /ganeti/latest/ready HTTP/1.1\r\n${HOST}Content-Length: 16000\r\n\r\n`;
const POSTED = `${POST}${'a'.repeat(16_000)}`;

test('refusals of bodies beyond the rate are few, and leave the connections open', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const before = [await refusals('rate'), await refusals('unanswered')];
  const sockets = await Promise.all(Array.from({ length: 8 }, connected));
  const until = performance.now() + 500;
  let answers = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < until) {
        socket.write(POSTED);
        const heard = await Promise.race([once(socket, 'data'), closed(socket)]);
        assert.match(String(heard), /^HTTP\/1\.1 (204|429) (?![^]*Connection: close)/);
        answers++;
      }
      socket.destroy();
    }),
  );
  assert.ok(answers > 16 && answers <= 8 * 11, `${answers} answers`);
  const after = [await refusals('rate'), await refusals('unanswered')];
  assert.deepEqual(after, [(before[0] ?? 0) + answers - 1, before[1]]);
});

test('who goes on posting while eight bodies are refused is cut off', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 0.01, burst: 1, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const before = await refusals('unanswered');
  const sockets = await Promise.all(Array.from({ length: 32 }, connected));
  for (const socket of sockets) socket.resume().write(POSTED);
  const until = performance.now() + 5000;
  await waitUntil(async () => (await refusals('unanswered')) > before || performance.now() > until);
  assert.ok(performance.now() < until);
  for (const socket of sockets) socket.destroy();
});

test('refusals of bodies of unknown length wait, too', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const head = POST.replace(/Content-Length: .*/, 'Transfer-Encoding: chunked');
  const until = performance.now() + 500;
  let answers = 0;
  for (; performance.now() < until; answers++)
    await sendRaw(guest.namespace, `${head}1\r\na\r\n0\r\n\r\n`, (text) => text !== '');
  assert.ok(answers > 1 && answers <= 12, `${answers} answers`);
});

test('who is at its limit and posts more than anything takes is cut off, and nothing is dropped for it', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 0.01, burst: 1, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  assert.equal((await askFromGuest(guest.namespace, '/')).status, 200);
  const before = await refusals('unanswered');
  const socket = await connected();
  const head = POST.replace(/Content-Length: .*/, `Content-Length: ${256 * 1024 + 1}`);
  socket.write(head);
  await closed(socket);
  assert.deepEqual([socket.bytesRead, await refusals('unanswered')], [0, before + 1]);
});

test('a body in crumbs ends its connection', async () => {
  const crumbs = '1\r\na\r\n'.repeat(60_000);
  const text = await sendRaw(
    guest.namespace,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${crumbs}0\r\n\r\n`,
  ).catch(() => 'reset');
  assert.doesNotMatch(text, / 204 /);
  const queue = await lab.control('GET', `/v1/instances/${view.uuid}/queue`);
  assert.equal(queue.status, 204, 'nothing was taken');
});

for (const [what, start, status] of [
  ['a GET', 'GET /latest/meta-data/mac', 400],
  ['a GET that waits', 'GET /latest/meta-data/mac?wait_for_change=true', 400],
  ['a POST to no place', 'POST /nowhere', 404],
  ['a PUT for a token', 'PUT /latest/api/token', 400],
] as const) {
  test(`a body without end behind ${what} is read for no longer than its answer takes`, async () => {
    const socket = await connected();
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
    const startedAtMs = performance.now();
    socket.write(`${start} HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`);
    const timer = setInterval(() => {
      if (socket.writable) socket.write('1\r\na\r\n'.repeat(50));
    }, 10);
    await closed(socket);
    clearInterval(timer);
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*Connection: close`));
    assert.ok(performance.now() - startedAtMs < 4000);
  });
}

test('one body of unknown length at a time; the next one is told to say its length', async () => {
  const socket = await connected();
  const head = `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
  socket.write(`${head}1\r\na\r\n`);
  await waitUntil(async () => (await unanswered()) === 1);
  const second = await sendRaw(guest.namespace, `${head}1\r\nb\r\n0\r\n\r\n`);
  assert.match(second, /^HTTP\/1\.1 411 /);
  const answer = once(socket, 'data');
  socket.write('0\r\n\r\n');
  assert.match(String((await answer)[0]), /^HTTP\/1\.1 204 /);
  socket.destroy();
  const third = await sendRaw(guest.namespace, `${head}0\r\n\r\n`, (text) => text.includes('204'));
  assert.match(third, /^HTTP\/1\.1 204 /);
});

test('header lines cost as requests do', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 1, burst: 30, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const many = `GET / HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(1500)}\r\n`;
  const text = await sendRaw(
    guest.namespace,
    many.repeat(2),
    (received) => received.split('HTTP/1.1').length > 2,
  );
  assert.match(text, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 429 [^]*Connection: close/);
  await assert.rejects(askFromGuest(guest.namespace, '/'), 'and nothing more for a while');
});

test('an instance has four images and packages at a time, and the node sees no more of its streams', async () => {
  let open = 0;
  let most = 0;
  const node = createServer((_request, response) => {
    most = Math.max(most, ++open);
    response.on('close', () => open--);
    response.writeHead(200, { 'content-length': 1 << 30 });
    response.flushHeaders();
  });
  node.listen(lab.contentSocket);
  await once(node, 'listening');
  await chown(lab.contentSocket, 65_534, 65_534);
  const socket = await connected();
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  const requests = ['image', 'package', 'os-install-package', 'image'].map(
    (name) => `GET /ganeti/latest/os/${name} HTTP/1.1\r\n${HOST}\r\n`,
  );
  socket.write(requests.join('').repeat(3));
  await waitUntil(async () => Promise.resolve(open === 4));
  const { status, headers } = await askFromGuest(guest.namespace, '/ganeti/latest/os/image');
  assert.deepEqual([status, headers['retry-after'], most], [503, '1', 4]);
  socket.destroy();
  await waitUntil(async () => Promise.resolve(open === 0));
  const again = await connected();
  again.write(requests[0] ?? '');
  await waitUntil(async () => Promise.resolve(open === 1));
  again.destroy();
  node.closeAllConnections();
  node.close();
});

const EVENTS = '/ganeti/latest/install/events';

test('one batch of install events at a time; the next one is told to come again', async () => {
  const socket = await connected();
  socket.write(`POST ${EVENTS} HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\n[`);
  await waitUntil(async () => (await unanswered()) === 1);
  const event = { type: 'stage-started', atMs: 1, stage: 'agent' };
  const post = async (): Promise<Answer> =>
    await askFromGuest(guest.namespace, EVENTS, { method: 'POST', body: JSON.stringify([event]) });
  const { status, headers } = await post();
  assert.deepEqual([status, headers['retry-after']], [429, '1']);
  socket.destroy();
  await waitUntil(async () => (await unanswered()) === 0);
  assert.notEqual((await post()).status, 429);
});

test('a hundred thousand events at once are not looked at, and their bytes are paid for', async () => {
  const limited = { ...view, limits: { requestsPerSecond: 0.1, burst: 100, connections: 64 } };
  assert.equal((await lab.put({ ...limited, revision: 2 })).status, 204);
  const body = `[${'{},'.repeat(87_000)}{}]`;
  const post = async (): Promise<Answer> =>
    await askFromGuest(guest.namespace, EVENTS, { method: 'POST', body });
  const first = await post();
  assert.deepEqual(
    [first.status, first.body.toString()],
    [400, '(top level): at most 256 events at once\n'],
  );
  assert.equal((await post()).status, 400);
  assert.equal((await post()).status, 429);
});

test('a guest that asks all the time fills its share of the log, and no more', async () => {
  const unlimited = { requestsPerSecond: 1e6, burst: 1e6, connections: 64 };
  assert.equal((await lab.put({ ...view, revision: 2, limits: unlimited })).status, 204);
  lab.takeLog();
  const sockets = await Promise.all(Array.from({ length: 8 }, connected));
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
  const lines = lab
    .takeLog()
    .split('\n')
    .filter((line) => line.includes('http.request'));
  assert.ok(lines.length >= 500 && lines.length < 1000, `${lines.length} lines of 6400 requests`);
});

const REPORTS = ['boot/status', 'boot/events', 'ready'].map((path) => `/ganeti/latest/${path}`);

test('of each other kind of report there is one at a time too, and none keeps another waiting', async () => {
  const event = JSON.stringify({ event_type: 'start', name: 'init-local' });
  const bodies = ['{"v1":{}}', event, 'a=b'];
  const askAll = async (): Promise<number[]> => {
    const all: number[] = [];
    for (const [index, path] of REPORTS.entries()) {
      const options = { method: 'POST', body: bodies[index] ?? '' };
      all.push((await askFromGuest(guest.namespace, path, options)).status);
    }
    return all;
  };
  for (const [index, path] of REPORTS.entries()) {
    const socket = await connected();
    socket.write(`POST ${path} HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\n[`);
    await waitUntil(async () => (await unanswered()) === 1);
    assert.deepEqual(
      await askAll(),
      REPORTS.map((_, at) => (at === index ? 429 : 204)),
      path,
    );
    socket.destroy();
    await waitUntil(async () => (await unanswered()) === 0);
    assert.deepEqual(await askAll(), [204, 204, 204], `after ${path}`);
  }
});

/** How many times a guest may post a body before it is told to come again, and the answers. */
async function postUntilRefused(path: string, body: string, shown = view): Promise<number[]> {
  const limits = { requestsPerSecond: 0.1, burst: 100, connections: 64 };
  assert.equal((await lab.put({ ...shown, revision: 2, limits })).status, 204);
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 101) {
    const options = { method: 'POST', body };
    statuses.push((await askFromGuest(guest.namespace, path, options)).status);
  }
  return statuses;
}

test('a status file of a hundred thousand values is not looked at, and its bytes are paid for', async () => {
  const body = `{"v1":{"init":{"errors":[${'0,'.repeat(130_000)}0]}}}`;
  const statuses = await postUntilRefused('/ganeti/latest/boot/status', body);
  assert.deepEqual(statuses, [400, 400, 429]);
});

test('the texts of a status file are paid for, each as a request', async () => {
  const texts = Array<string>(20).fill('e');
  const stage = { errors: texts, recoverable_errors: { WARNING: texts } };
  const body = JSON.stringify({ v1: { init: stage } });
  const statuses = await postUntilRefused('/ganeti/latest/boot/status', body);
  assert.deepEqual(statuses, [204, 204, 204, 429]);
});

test('an event of a boot with thousands of values is not looked at, and its bytes are paid for', async () => {
  const event = { event_type: 'start', name: 'init-local', files: Array<number>(8000).fill(0) };
  const statuses = await postUntilRefused('/ganeti/latest/boot/events', JSON.stringify(event));
  assert.ok(statuses.length <= 26, `${statuses.length} of 16 kB each`);
  assert.deepEqual([...new Set(statuses)], [400, 429]);
});

test('texts that are dear to mask are paid for by the time that it takes', async () => {
  const value = Array.from({ length: 350 }, (_, at) => `aaaa${'b'.repeat(at)}c`).join('\n');
  const event = { event_type: 'start', name: 'init-local', description: 'a'.repeat(500) };
  const statuses = await postUntilRefused('/ganeti/latest/boot/events', JSON.stringify(event), {
    ...view,
    osParameters: { key: { value, visibility: 'private' } },
  });
  assert.ok(statuses.length < 75, `${statuses.length} events`);
  assert.deepEqual([...new Set(statuses)], [204, 429]);
});

test('the bytes of a form are paid for', async () => {
  const statuses = await postUntilRefused('/ganeti/latest/ready', 'pub_key_=a&'.repeat(1480));
  assert.ok(statuses.length <= 26, `${statuses.length} of 16 kB each`);
  assert.deepEqual([...new Set(statuses)], [204, 429]);
});
