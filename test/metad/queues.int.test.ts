import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { askFromGuest, connectFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const view = exampleView();
const READ = '/ganeti/latest/read';
const WRITE = '/ganeti/2026-12-01/write';
const QUEUE = `/v1/instances/${view.uuid}/queue`;

let lab: ChannelLab;
let guest: Guest;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
});
beforeEach(async () => {
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  assert.equal((await lab.put(view)).status, 204);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function read(query = ''): Promise<Answer> {
  return await askFromGuest(guest.namespace, READ + query);
}

async function write(body: Buffer | string): Promise<Answer> {
  return await askFromGuest(guest.namespace, WRITE, { method: 'POST', body });
}

test('bytes reach the guest once, in order and unchanged', async () => {
  const bytes = Buffer.from([0, 255, 13, 10, 128, 0]);
  assert.equal((await lab.control('POST', QUEUE, bytes)).status, 204);
  assert.equal((await lab.control('POST', QUEUE, 'more')).status, 204);
  const first = await read();
  assert.equal(first.status, 200);
  assert.deepEqual(first.body, Buffer.concat([bytes, Buffer.from('more')]));
  assert.equal(first.headers['x-gnt-offset'], '10');
  assert.equal(first.headers['cache-control'], 'no-store');
  assert.equal((await read()).status, 204);
});

test('HEAD removes no bytes from the queue', async () => {
  await lab.control('POST', QUEUE, 'abc');
  const head = await askFromGuest(guest.namespace, READ, { method: 'HEAD' });
  assert.equal(head.headers['content-length'], '3');
  assert.equal((await read()).body.toString(), 'abc');
});

test('a waiting reader is answered when bytes arrive, and with 204 at its timeout', async () => {
  const waiting = read('?wait=30');
  await new Promise((resolve) => setTimeout(resolve, 200));
  await lab.control('POST', QUEUE, 'now');
  assert.equal((await waiting).body.toString(), 'now');
  const startedAt = performance.now();
  assert.equal((await read('?wait=1')).status, 204);
  assert.ok(performance.now() - startedAt > 900);
  assert.equal((await read('?wait=61')).status, 400);
  assert.equal((await read('?wait=x')).status, 400);
});

test('a reader that disconnects while it waits removes no bytes from the queue', async () => {
  const controller = new AbortController();
  const gone = askFromGuest(guest.namespace, `${READ}?wait=30`, { signal: controller.signal });
  gone.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 200));
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await lab.control('POST', QUEUE, 'kept');
  assert.equal((await read()).body.toString(), 'kept');
});

test('with an offset bytes are repeated until they are acknowledged', async () => {
  await lab.control('POST', QUEUE, 'abcdef');
  for (let count = 0; count < 2; count++) {
    const answer = await read('?offset=0');
    assert.equal(answer.body.toString(), 'abcdef');
    assert.equal(answer.headers['x-gnt-offset'], '6');
  }
  assert.equal((await read('?offset=4')).body.toString(), 'ef');
  const done = await read('?offset=6');
  assert.equal(done.status, 204);
  assert.equal(done.headers['x-gnt-offset'], '6');
  assert.equal((await read('?offset=7')).status, 416);
  assert.equal((await read('?offset=-1')).status, 400);
});

test('bytes that the guest writes are kept until the host acknowledges them by offset', async () => {
  assert.equal((await write('one')).status, 204);
  assert.equal((await write('two')).status, 204);
  const kept = await lab.control('GET', `${QUEUE}?offset=0`);
  assert.equal(kept.body.toString(), 'onetwo');
  const rest = await lab.control('GET', `${QUEUE}?offset=3&wait=1`);
  assert.equal(rest.body.toString(), 'two');
  assert.equal((await lab.control('GET', `${QUEUE}?offset=6`)).status, 204);
});

test('a write of 64 KiB is accepted, and a write of one byte more gets 413', async () => {
  assert.equal((await write(Buffer.alloc(65_536))).status, 204);
  const refused = await write(Buffer.alloc(65_537));
  assert.equal(refused.status, 413);
  const queued = await lab.control('GET', QUEUE);
  assert.equal(queued.body.length, 65_536);
});

test('a chunked body that grows too long is refused whole', async () => {
  const answer = await askFromGuest(guest.namespace, WRITE, {
    method: 'POST',
    headers: { 'transfer-encoding': 'chunked' },
    body: Buffer.alloc(200_000),
  });
  assert.equal(answer.status, 413);
  assert.equal((await lab.control('GET', QUEUE)).status, 204);
});

test('with 1 MiB waiting a write is refused with 429 until the host has read', async () => {
  for (let count = 0; count < 16; count++) {
    assert.equal((await write(Buffer.alloc(65_536, count))).status, 204);
  }
  const refused = await write('x');
  assert.equal(refused.status, 429);
  assert.match(refused.headers['retry-after'] ?? '', /^\d+$/);
  assert.equal((await lab.control('GET', QUEUE)).body.length, 1_048_576);
  assert.equal((await write('x')).status, 204);
});

test('half a body that never ends is not written', async () => {
  const socket = connectFromGuest(guest.namespace);
  socket.on('error', () => undefined);
  socket.write(`POST ${WRITE} HTTP/1.1\r\nHost: 169.254.169.254\r\nContent-Length: 10\r\n\r\nhalf`);
  await new Promise((resolve) => setTimeout(resolve, 200));
  socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal((await lab.control('GET', QUEUE)).status, 204);
});

test('a wrong method gets 405 with the allowed methods', async () => {
  const get = await askFromGuest(guest.namespace, WRITE);
  assert.equal(get.status, 405);
  assert.equal(get.headers.allow, 'POST');
  const post = await askFromGuest(guest.namespace, READ, { method: 'POST' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.allow, 'GET, HEAD');
});
