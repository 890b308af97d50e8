import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import nacl from 'tweetnacl';
import { type Logger, silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store } from '#shared/store/store.ts';
import type { ApiHandlers } from '../../../../noded/api/http/handlers.ts';
import { createConnectionApi } from '../../../../noded/api/http/api-server.ts';
import { imageRoutes } from '../../../../noded/api/http/image-routes.ts';
import { createNeighbourImages } from '../../../../noded/cluster/images/neighbour-images.ts';
import { startNodeLinks, type NodeLinks } from '../../../../noded/cluster/peers/node-links.ts';
import type { ImageCache } from '../../../../noded/content/images/image-cache.ts';
import { ImageLender } from '../../../../noded/content/images/lend-image.ts';
import { encodeKey } from '../../../../noded/records/node-key.ts';
import { createNodeRegistry, type NodeRegistry } from '../../../../noded/records/node-registry.ts';
import {
  content,
  fails,
  newCache,
  sha256,
  sha512,
  signal,
} from '../../content/images/image-cache-lab.ts';
import { type ImageServer, startImageServer } from '../../content/images/image-server.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';

/** Three nodes with data links on one real Redis, each with an image cache. */
const NAMES = ['a', 'b', 'c'] as const;
type Name = (typeof NAMES)[number];
let redis: RedisServer;
let store: Store;
let nodes: NodeRegistry;
let origin: ImageServer;
const links = new Map<Name, NodeLinks>();
const keys = new Map<Name, nacl.BoxKeyPair>();

before(async () => {
  redis = await startRedis();
  const server = { url: `unix:${redis.socket}` };
  store = await createRedisStore({ server, logger: silentLogger });
  nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  origin = await startImageServer({ content });
  for (const nodeName of NAMES) {
    const key = nacl.box.keyPair();
    keys.set(nodeName, key);
    await nodes.register(nodeName, encodeKey(key.publicKey));
    const dataAddress = { host: '127.0.0.1', port: 0 };
    links.set(
      nodeName,
      await startNodeLinks({ server, nodeName, key, nodes, dataAddress, logger: silentLogger }),
    );
  }
});

after(async () => {
  for (const each of links.values()) await each[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
  await store.close();
  await redis.stop();
});

function linksOf(name: Name): NodeLinks {
  const found = links.get(name);
  assert.ok(found !== undefined);
  return found;
}

/** Lets a node serve its cache as gnt-noded does. */
function serve(name: Name, cache: ImageCache): void {
  // Other endpoints are not asked for.
  const handlers = imageRoutes({
    imageLender: new ImageLender(cache),
    catalogue: {} as never,
  }) as unknown as ApiHandlers;
  linksOf(name).onStream = createConnectionApi({
    ...{ handlers, forwarding: null, logger: silentLogger },
  });
}

/** Lets a node answer every request for an image by a handler. */
function serveBy(
  name: Name,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  const server = createServer(answer);
  linksOf(name).onStream = (stream) => server.emit('connection', stream);
}

/** A cache of node a, which asks b and c. */
async function receiver(options: { readonly rateWindowMs?: number } = {}) {
  origin.requests.length = 0;
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (event) => void warnings.push(event) };
  const peers = linksOf('a');
  const neighbours = createNeighbourImages({ nodeName: 'a', nodes, peers, logger });
  const waits: string[] = [];
  const { cache, names } = await newCache({ neighbours, logger, ...options });
  const fetch = (url = origin.url, checksum = `sha256:${sha256}`) =>
    cache.fetch(url, { signal, checksum, onWait: (message) => void waits.push(message) });
  return { fetch, cache, names, warnings, waits };
}

/** Without an image in its cache. */
async function emptyNode(name: Name): Promise<void> {
  serve(name, (await newCache()).cache);
}

async function fullNode(name: Name): Promise<void> {
  const { cache } = await newCache();
  (await cache.fetch(origin.url, { signal, checksum: `sha256:${sha256}` })).release();
  serve(name, cache);
}

const NOWHERE = 'http://127.0.0.1:1/image';

test('an image with a checksum comes from the node that has it, and no server is asked', async () => {
  await emptyNode('b');
  await fullNode('c');
  for (const checksum of [`sha256:${sha256}`, `sha512:${sha512}`]) {
    const { fetch, names, waits, warnings } = await receiver();
    // The node has to know the SHA-512, as after a fetch with it.
    if (checksum.startsWith('sha512')) {
      const { cache } = await newCache();
      (await cache.fetch(origin.url, { signal, checksum })).release();
      serve('c', cache);
      origin.requests.length = 0;
    }
    const image = await fetch(NOWHERE, checksum);
    assert.ok((await readFile(image.path)).equals(content));
    image.release();
    assert.deepEqual(await names(), ['index.json', `sha256-${sha256}`]);
    assert.deepEqual(waits, [`node 'c' has the image and sends it`]);
    assert.equal(origin.requests.length, 0);
    assert.deepEqual(warnings, []);
    // It is cached under its digest now.
    (await fetch(NOWHERE, checksum)).release();
    assert.equal(waits.length, 1);
  }
});

test('without a checksum, or without a node that has the image, its server is asked', async () => {
  await fullNode('b');
  await emptyNode('c');
  const { cache } = await receiver();
  (await cache.fetch(origin.url, { signal })).release();
  assert.equal(origin.requests.length, 1);
  await emptyNode('b');
  const { fetch, waits, warnings } = await receiver();
  (await fetch()).release();
  assert.equal(origin.requests.length, 1);
  assert.deepEqual([waits, warnings], [[], []]);
  const gone = await receiver();
  await assert.rejects(gone.fetch(NOWHERE), fails('DOWNLOAD_FAILED', /ECONNREFUSED/));
});

test('other bytes than those of the checksum are removed, logged, and read from the server', async () => {
  await emptyNode('c');
  const wrong = randomBytes(content.length);
  for (const bytes of [wrong, Buffer.concat([content, wrong]), Buffer.alloc(0)]) {
    serveBy('b', (_, response) => response.end(bytes));
    const { fetch, names, waits, warnings } = await receiver();
    const image = await fetch();
    assert.ok((await readFile(image.path)).equals(content));
    image.release();
    assert.deepEqual(await names(), ['index.json', `sha256-${sha256}`]);
    assert.equal(origin.requests.length, 1);
    assert.deepEqual(warnings, ['images.neighbours-failed']);
    assert.match(waits[0] ?? '', /node 'b' has the image/);
    assert.match(waits.at(-1) ?? '', /its server is asked: the sha256 of the content from b is/);
  }
});

test('an image that is too large, endless or of a false length cannot fill the cache', async () => {
  await emptyNode('c');
  for (const length of ['999999999999999', '-5', '1e9', String(content.length + 1)]) {
    serveBy('b', (_, response) => {
      response.socket?.write(
        `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`,
      );
      response.socket?.end(content);
    });
    const { fetch, names } = await receiver();
    const image = await fetch();
    assert.ok((await readFile(image.path)).equals(content));
    image.release();
    assert.equal(origin.requests.length, 1, length);
    assert.ok((await names()).includes(`sha256-${sha256}`));
  }
  let written = 0;
  serveBy('b', (_, response) => {
    const send = setInterval(() => {
      written += content.length;
      response.write(content);
    }, 5);
    response.once('close', () => clearInterval(send));
  });
  const { fetch } = await receiver();
  (await fetch()).release();
  assert.ok(written < 100 * content.length, `${written} bytes`);
});

test('an answer that is refused unread is closed', async () => {
  await emptyNode('c');
  const closed = Promise.withResolvers<undefined>();
  serveBy('b', (_, response) => {
    response.once('close', () => closed.resolve(undefined));
    response.writeHead(200, { 'content-length': '999999999999999' });
    response.write(content);
  });
  const { fetch } = await receiver();
  (await fetch()).release();
  const late = sleep(2000, 'open', { ref: false });
  assert.equal(await Promise.race([closed.promise, late]), undefined);
});

test('another node continues at the byte where one stopped', async () => {
  const asked: string[] = [];
  for (const name of ['b', 'c'] as const)
    serveBy(name, (request, response) => {
      const offset = Number(/offset=(\d+)/.exec(request.url ?? '')?.[1] ?? 0);
      asked.push(`${name} ${offset > 0}`);
      response.writeHead(200, { 'content-length': content.length - offset });
      if (offset > 0) return void response.end(content.subarray(offset));
      // Both are asked at first. The other one closes an unread answer.
      response.write(content.subarray(0, 100_000));
      void sleep(200).then(() => response.destroy());
    });
  const { fetch, waits, warnings } = await receiver();
  const image = await fetch();
  assert.ok((await readFile(image.path)).equals(content));
  image.release();
  assert.equal(origin.requests.length, 0);
  assert.ok(
    asked.some((each) => each.endsWith('true')),
    asked.join(),
  );
  assert.match(waits.at(-1) ?? '', /node '[bc]' has the image and sends it from byte \d+ on/);
  assert.deepEqual(warnings, []);
});

test('a node that dies half way, or is slow, is replaced by the server of the image', async () => {
  await emptyNode('c');
  for (const fault of ['dies', 'is slow', 'is silent'] as const) {
    serveBy('b', (_, response) => {
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, 100_000));
      if (fault === 'dies') void sleep(50).then(() => response.destroy());
      if (fault !== 'is slow') return;
      const drip = setInterval(() => response.write('x'), 10);
      response.once('close', () => clearInterval(drip));
    });
    const { fetch, names, waits } = await receiver({ rateWindowMs: 500 });
    const image = await fetch();
    assert.ok((await readFile(image.path)).equals(content));
    image.release();
    assert.equal(origin.requests.length, 1, fault);
    assert.match(waits.at(-1) ?? '', /its server is asked: no further node/, fault);
    // The bytes that arrived stay for a later attempt, as of a server.
    assert.ok((await names()).includes(`sha256-${sha256}`));
  }
});

test('several fetches of one content read it once, and a cancelled fetch does not end the others', async () => {
  let sent = 0;
  serveBy('b', (_, response) => {
    sent += 1;
    response.writeHead(200, { 'content-length': content.length });
    void sleep(100).then(() => response.end(content));
  });
  await emptyNode('c');
  const { cache } = await receiver();
  const leaving = new AbortController();
  const checksum = `sha256:${sha256}`;
  const all = [signal, leaving.signal, signal].map((each) =>
    cache.fetch(NOWHERE, { signal: each, checksum }),
  );
  setTimeout(() => leaving.abort(new Error('left')), 50);
  const [first, second, third] = await Promise.allSettled(all);
  assert.deepEqual(
    [first?.status, second?.status, third?.status],
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(sent, 1);
});

test('images do not go through the store, also when no node announces a data address', async (t) => {
  await fullNode('b');
  await fullNode('c');
  const restore = await Promise.all(
    (['b', 'c'] as const).map(async (name) => {
      const address = await nodes.dataAddressOf(name);
      const key = encodeKey(keys.get(name)?.publicKey ?? new Uint8Array());
      assert.ok(address !== undefined);
      await nodes.announceDataAddress(name, key, null);
      return () => nodes.announceDataAddress(name, key, address);
    }),
  );
  t.after(() => Promise.all(restore.map((each) => each())));
  // A read record counts for a second.
  await sleep(1100);
  const { fetch, waits } = await receiver();
  (await fetch()).release();
  assert.equal(origin.requests.length, 1);
  assert.deepEqual(waits, []);
});

test('an offline node is not asked', async (t) => {
  await fullNode('b');
  await emptyNode('c');
  await nodes.changeFlags('b', { offline: true });
  t.after(() => nodes.changeFlags('b', { offline: false }));
  const { fetch } = await receiver();
  (await fetch()).release();
  assert.equal(origin.requests.length, 1);
});

/** Lends images of a cache that has one. */
async function lender(t: TestContext, maxStallMs?: number): Promise<ImageLender> {
  const { cache } = await newCache();
  (await cache.fetch(origin.url, { signal, checksum: `sha256:${sha256}` })).release();
  t.after(() => cache.close());
  return new ImageLender(cache, maxStallMs);
}

test('a node sends a content once at a time to each node, and few in total', async (t) => {
  const images = await lender(t);
  const checksum = `sha256:${sha256}`;
  await assert.rejects(images.lend('md5:1', 0, 'b'), fails('IMAGE_SOURCE', /not a checksum/));
  const other = `sha256:${'0'.repeat(64)}`;
  await assert.rejects(images.lend(other, 0, 'b'), fails('IMAGE_NOT_FOUND', /in its cache/));
  await assert.rejects(
    images.lend(checksum, content.length + 1, 'b'),
    fails('IMAGE_NOT_FOUND', /in its cache/),
  );
  const opened = await Promise.all(
    Array.from({ length: 8 }, (_, n) => images.lend(checksum, n, `node${n}`)),
  );
  assert.deepEqual(
    opened.map(({ sizeBytes }) => content.length - sizeBytes),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
  await assert.rejects(images.lend(checksum, 0, 'b'), fails('CONFLICT', /too many images/));
  opened[0]?.stream.destroy();
  await sleep(10);
  await assert.rejects(images.lend(checksum, 0, 'node1'), fails('CONFLICT', /too many images/));
  (await images.lend(checksum, 0, 'b')).stream.destroy();
  for (const { stream } of opened) stream.destroy();
});

test('a content that a node stops reading is freed', async (t) => {
  const images = await lender(t, 100);
  const { stream } = await images.lend(`sha256:${sha256}`, 0, 'b');
  stream.read();
  await new Promise<void>((resolve) => stream.once('close', () => resolve()));
  (await images.lend(`sha256:${sha256}`, 0, 'b')).stream.destroy();
});
