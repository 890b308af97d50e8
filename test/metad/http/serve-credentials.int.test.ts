import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import type { Cloud } from '#shared/contract/cloud-credentials.ts';
import { MAX_CREDENTIAL_REQUESTS } from '#shared/contract/metad-control.ts';
import type { Exchange } from '../../../metad/http/exchange.ts';
import {
  createServeCredentials,
  type ServeCredentials,
} from '../../../metad/http/serve-credentials.ts';

const UUID = '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f';
let folder: string;
let socketPath: string;
let node: Server;
let guests: Server;
let serve: ServeCredentials;
/** The answer of the node daemon. */
let answer: RequestListener;
/** Milliseconds until the guest may ask again. */
let delayMs: number;
const asked: string[] = [];
const failures: unknown[] = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gnt-credentials-'));
  socketPath = join(folder, 'node.sock');
  node = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((done) => node.listen(socketPath, done));
  guests = createServer((request, response) => {
    const instance = { view: { uuid: UUID }, identityTokens: { takeCredentials: () => delayMs } };
    const cloud = (request.url ?? '').slice(1) as Cloud;
    void serve({ request, response, instance } as unknown as Exchange, cloud);
  });
  await new Promise<void>((done) => guests.listen(0, '127.0.0.1', done));
});
beforeEach(() => {
  delayMs = 0;
  asked.splice(0);
  failures.splice(0);
  const audit = { failed: (...given: unknown[]) => void failures.push(given) };
  serve = createServeCredentials({
    ...{ socketPath, clock: systemClock },
    audit: audit as unknown as Parameters<typeof createServeCredentials>[0]['audit'],
  });
});
after(async () => {
  node.close();
  guests.close();
  await rm(folder, { recursive: true });
});

async function ask(cloud: Cloud, method = 'GET') {
  const { port } = guests.address() as AddressInfo;
  const found = await fetch(`http://127.0.0.1:${port}/${cloud}`, { method });
  return { status: found.status, headers: found.headers, text: await found.text() };
}

test('credentials of the node arrive unchanged, in the form of each cloud, and are not kept', async () => {
  answer = (_, response) => response.end('{"a": 1}');
  const aws = await ask('aws');
  assert.deepEqual([aws.status, aws.text], [200, '{"a": 1}']);
  assert.equal(aws.headers.get('content-type'), 'text/plain');
  assert.equal(aws.headers.get('cache-control'), 'no-store');
  assert.equal(aws.headers.get('metadata-flavor'), null);
  const google = await ask('google');
  assert.equal(google.headers.get('content-type'), 'application/json');
  assert.equal(google.headers.get('metadata-flavor'), 'Google');
  const head = await ask('google', 'HEAD');
  assert.deepEqual([head.text, head.headers.get('content-length')], ['', '8']);
  assert.deepEqual(asked.slice(0, 2), [
    `/v1/instances/${UUID}/identity/credentials/aws`,
    `/v1/instances/${UUID}/identity/credentials/google`,
  ]);
  assert.equal(asked.length, 3);
});

test('an instance without credentials is refused as the node says, without text for aws', async () => {
  for (const status of [403, 404]) {
    answer = (_, response) => response.writeHead(status).end('not permitted');
    const [aws, google] = [await ask('aws'), await ask('google')];
    assert.deepEqual([aws.status, aws.text.trim()], [status, '']);
    assert.deepEqual([google.status, google.text.trim()], [status, 'not permitted']);
    assert.equal(google.headers.get('metadata-flavor'), 'Google');
    assert.equal(google.headers.get('retry-after'), null);
  }
});

test('a cloud or a node that fails is 503 for google, and a document for aws', async () => {
  const failing: RequestListener[] = [
    (_, response) => response.writeHead(502).end('why'),
    (request) => request.socket.destroy(),
  ];
  for (const each of failing) {
    answer = each;
    const [aws, google] = [await ask('aws'), await ask('google')];
    assert.equal(aws.status, 200);
    assert.equal((JSON.parse(aws.text) as { Code: string }).Code, 'Failed');
    assert.equal(google.status, 503);
    assert.ok(Number(google.headers.get('retry-after')) > 0);
    assert.doesNotMatch(google.text, /why/);
  }
  assert.equal(failures.length, 2);
});

test('a guest that asks too often waits as long as it must, and the node is not asked', async () => {
  answer = (_, response) => response.end('{}');
  delayMs = 61_500;
  const refused = await ask('aws');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '62']);
  assert.deepEqual(asked, []);
  delayMs = 0;
  assert.equal((await ask('aws')).status, 200);
});

test('requests at the same time are limited, and each gives its place back', async () => {
  const count = 2 * MAX_CREDENTIAL_REQUESTS;
  const held: (() => void)[] = [];
  let refused = 0;
  let answered = 0;
  await new Promise<void>((done) => {
    const doneIfAll = (): void => {
      if (refused + held.length === count) done();
    };
    answer = (_, response) => {
      held.push(() => response.end('{}'));
      doneIfAll();
    };
    for (let at = 0; at < count; at += 1)
      void ask('aws').then(({ status }) => {
        if (status === 200) answered += 1;
        else if (status === 429) refused += 1;
        doneIfAll();
      });
  });
  assert.ok(held.length > 0 && held.length <= MAX_CREDENTIAL_REQUESTS, String(held.length));
  for (const end of held) end();
  while (answered < held.length) await turn();
  answer = (_, response) => response.end('{}');
  assert.equal((await ask('aws')).status, 200);
});
