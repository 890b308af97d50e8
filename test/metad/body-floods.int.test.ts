import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Answer } from './support/channel-lab.ts';
import { closed, HOST_LINE as HOST, useFloodLab, waitUntil } from './support/flood-lab.ts';
import { askFromGuest, sendRaw } from './support/guest-http.ts';

/** Floods of bodies by one guest. */
const flood = useFloodLab();

/** Refused posts with a body, of a guest that reads each answer before the next request. */
const POST = `POST /ganeti/latest/ready HTTP/1.1\r\n${HOST}Content-Length: 16000\r\n\r\n`;
const POSTED = `${POST}${'a'.repeat(16_000)}`;

test('refusals of bodies beyond the rate are delayed, and leave the connections open', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const before = [await flood.refusals('rate'), await flood.refusals('unanswered')];
  const sockets = await Promise.all(Array.from({ length: 8 }, () => flood.connect()));
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
  const after = [await flood.refusals('rate'), await flood.refusals('unanswered')];
  assert.deepEqual(after, [(before[0] ?? 0) + answers - 1, before[1]]);
});

test('a guest that posts while eight refused bodies are read is disconnected', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 0.01, burst: 1, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const before = await flood.refusals('unanswered');
  const sockets = await Promise.all(Array.from({ length: 32 }, () => flood.connect()));
  for (const socket of sockets) socket.resume().write(POSTED);
  const until = performance.now() + 5000;
  await waitUntil(
    async () => (await flood.refusals('unanswered')) > before || performance.now() > until,
  );
  assert.ok(performance.now() < until);
  for (const socket of sockets) socket.destroy();
});

test('refusals of bodies of unknown length are delayed', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 1, burst: 1, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const head = POST.replace(/Content-Length: .*/, 'Transfer-Encoding: chunked');
  const until = performance.now() + 500;
  let answers = 0;
  for (; performance.now() < until; answers++)
    await sendRaw(flood.guest.namespace, `${head}1\r\na\r\n0\r\n\r\n`, (text) => text !== '');
  assert.ok(answers > 1 && answers <= 12, `${answers} answers`);
});

test('a guest at its rate limit that announces a body beyond the largest limit is disconnected without an answer', async () => {
  const limited = { ...flood.view, limits: { requestsPerSecond: 0.01, burst: 1, connections: 64 } };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  assert.equal((await askFromGuest(flood.guest.namespace, '/')).status, 200);
  const before = await flood.refusals('unanswered');
  const socket = await flood.connect();
  const head = POST.replace(/Content-Length: .*/, `Content-Length: ${256 * 1024 + 1}`);
  socket.write(head);
  await closed(socket);
  assert.deepEqual([socket.bytesRead, await flood.refusals('unanswered')], [0, before + 1]);
});

test('a body of thousands of one-byte chunks is discarded', async () => {
  const crumbs = '1\r\na\r\n'.repeat(60_000);
  const text = await sendRaw(
    flood.guest.namespace,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${crumbs}0\r\n\r\n`,
  ).catch(() => 'reset');
  assert.doesNotMatch(text, / 204 /);
  const queue = await flood.lab.control('GET', `/v1/instances/${flood.view.uuid}/queue`);
  assert.equal(queue.status, 204, 'nothing was taken');
});

for (const [what, start, status] of [
  ['a GET', 'GET /latest/meta-data/mac', 400],
  ['a GET that waits', 'GET /latest/meta-data/mac?wait_for_change=true', 400],
  ['a POST to no place', 'POST /nowhere', 404],
  ['a PUT for a token', 'PUT /latest/api/token', 400],
] as const) {
  test(`an endless body behind ${what} gets its answer and a closed connection within 4 seconds`, async () => {
    const socket = await flood.connect();
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

test('a second body of unknown length gets 411 while the first is being read', async () => {
  const socket = await flood.connect();
  const head = `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
  socket.write(`${head}1\r\na\r\n`);
  await waitUntil(async () => (await flood.unanswered()) === 1);
  const second = await sendRaw(flood.guest.namespace, `${head}1\r\nb\r\n0\r\n\r\n`);
  assert.match(second, /^HTTP\/1\.1 411 /);
  const answer = once(socket, 'data');
  socket.write('0\r\n\r\n');
  assert.match(String((await answer)[0]), /^HTTP\/1\.1 204 /);
  socket.destroy();
  const third = await sendRaw(flood.guest.namespace, `${head}0\r\n\r\n`, (text) =>
    text.includes('204'),
  );
  assert.match(third, /^HTTP\/1\.1 204 /);
});

const EVENTS = '/ganeti/latest/install/events';

test('a second batch of install events gets 429 while the first is being read', async () => {
  const socket = await flood.connect();
  socket.write(`POST ${EVENTS} HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\n[`);
  await waitUntil(async () => (await flood.unanswered()) === 1);
  const event = { type: 'stage-started', atMs: 1, stage: 'agent' };
  const post = async (): Promise<Answer> =>
    await askFromGuest(flood.guest.namespace, EVENTS, {
      method: 'POST',
      body: JSON.stringify([event]),
    });
  const { status, headers } = await post();
  assert.deepEqual([status, headers['retry-after']], [429, '1']);
  socket.destroy();
  await waitUntil(async () => (await flood.unanswered()) === 0);
  assert.notEqual((await post()).status, 429);
});

test('a hundred thousand events at once are refused, and their bytes count against the rate limit', async () => {
  const limited = {
    ...flood.view,
    limits: { requestsPerSecond: 0.1, burst: 100, connections: 64 },
  };
  assert.equal((await flood.lab.put({ ...limited, revision: 2 })).status, 204);
  const body = `[${'{},'.repeat(87_000)}{}]`;
  const post = async (): Promise<Answer> =>
    await askFromGuest(flood.guest.namespace, EVENTS, { method: 'POST', body });
  const first = await post();
  assert.deepEqual(
    [first.status, first.body.toString()],
    [400, '(top level): more than 256 events\n'],
  );
  assert.equal((await post()).status, 400);
  assert.equal((await post()).status, 429);
});

const REPORTS = ['boot/status', 'boot/events', 'ready'].map((path) => `/ganeti/latest/${path}`);

test('a second report of the same kind gets 429 while the first is being read, and other kinds are accepted', async () => {
  const event = JSON.stringify({ event_type: 'start', name: 'init-local' });
  const bodies = ['{"v1":{}}', event, 'a=b'];
  const askAll = async (): Promise<number[]> => {
    const all: number[] = [];
    for (const [index, path] of REPORTS.entries()) {
      const options = { method: 'POST', body: bodies[index] ?? '' };
      all.push((await askFromGuest(flood.guest.namespace, path, options)).status);
    }
    return all;
  };
  for (const [index, path] of REPORTS.entries()) {
    const socket = await flood.connect();
    socket.write(`POST ${path} HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\n[`);
    await waitUntil(async () => (await flood.unanswered()) === 1);
    assert.deepEqual(
      await askAll(),
      REPORTS.map((_, at) => (at === index ? 429 : 204)),
      path,
    );
    socket.destroy();
    await waitUntil(async () => (await flood.unanswered()) === 0);
    assert.deepEqual(await askAll(), [204, 204, 204], `after ${path}`);
  }
});

/** Posts a body until it is refused. Returns the statuses. */
async function postUntilRefused(path: string, body: string, shown = flood.view): Promise<number[]> {
  const limits = { requestsPerSecond: 0.1, burst: 100, connections: 64 };
  assert.equal((await flood.lab.put({ ...shown, revision: 2, limits })).status, 204);
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 101) {
    const options = { method: 'POST', body };
    statuses.push((await askFromGuest(flood.guest.namespace, path, options)).status);
  }
  return statuses;
}

test('a status file of a hundred thousand values gets 400, and its bytes count against the rate limit', async () => {
  const body = `{"v1":{"init":{"errors":[${'0,'.repeat(130_000)}0]}}}`;
  const statuses = await postUntilRefused('/ganeti/latest/boot/status', body);
  assert.deepEqual(statuses, [400, 400, 429]);
});

test('each text of a status file counts as a request against the rate limit', async () => {
  const texts = Array<string>(20).fill('e');
  const stage = { errors: texts, recoverable_errors: { WARNING: texts } };
  const body = JSON.stringify({ v1: { init: stage } });
  const statuses = await postUntilRefused('/ganeti/latest/boot/status', body);
  assert.deepEqual(statuses, [204, 204, 204, 429]);
});

test('a boot event with thousands of values gets 400, and its bytes count against the rate limit', async () => {
  const event = { event_type: 'start', name: 'init-local', files: Array<number>(8000).fill(0) };
  const statuses = await postUntilRefused('/ganeti/latest/boot/events', JSON.stringify(event));
  assert.ok(statuses.length <= 26, `${statuses.length} of 16 kB each`);
  assert.deepEqual([...new Set(statuses)], [400, 429]);
});

test('the time to mask slow texts counts against the rate limit', async () => {
  const value = Array.from({ length: 350 }, (_, at) => `aaaa${'b'.repeat(at)}c`).join('\n');
  const event = { event_type: 'start', name: 'init-local', description: 'a'.repeat(500) };
  const statuses = await postUntilRefused('/ganeti/latest/boot/events', JSON.stringify(event), {
    ...flood.view,
    osParameters: { key: { value, visibility: 'private' } },
  });
  assert.ok(statuses.length < 75, `${statuses.length} events`);
  assert.deepEqual([...new Set(statuses)], [204, 429]);
});

test('the bytes of a form count against the rate limit', async () => {
  const statuses = await postUntilRefused('/ganeti/latest/ready', 'pub_key_=a&'.repeat(1480));
  assert.ok(statuses.length <= 26, `${statuses.length} of 16 kB each`);
  assert.deepEqual([...new Set(statuses)], [204, 429]);
});
