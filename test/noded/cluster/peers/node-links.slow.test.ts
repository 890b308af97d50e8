import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, test, type TestContext } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import nacl from 'tweetnacl';
import { isAppError } from '#shared/errors/app-error.ts';
import { type Logger, silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store } from '#shared/store/store.ts';
import { makeNodeCertificate } from '../../../../noded/cluster/peers/node-certificate.ts';
import { startNodeLinks, type NodeLinks } from '../../../../noded/cluster/peers/node-links.ts';
import { startPeerLink } from '../../../../noded/cluster/peers/peer-link.ts';
import { encodeKey } from '../../../../noded/records/node-key.ts';
import { createNodeRegistry, type NodeRegistry } from '../../../../noded/records/node-registry.ts';
import { until } from '#shared/abort/until.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';

/** Two nodes with data addresses on one real Redis. */
let redis: RedisServer;
let store: Store;
let nodes: NodeRegistry;
const keys = { a: nacl.box.keyPair(), b: nacl.box.keyPair() };
type Name = keyof typeof keys;
const LOOPBACK = { host: '127.0.0.1', port: 0 };

before(async () => {
  redis = await startRedis();
  store = await createRedisStore({ server: server(), logger: silentLogger });
  nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  for (const name of ['a', 'b'] as const)
    await nodes.register(name, encodeKey(keys[name].publicKey));
});

after(async () => {
  await store.close();
  await redis.stop();
});

const server = (): { url: string } => ({ url: `unix:${redis.socket}` });

interface Started {
  readonly links: NodeLinks;
  /** Events that the node logged as warnings, with their fields. */
  readonly warnings: { readonly event: string; readonly reason: string }[];
}

async function start(
  t: TestContext,
  nodeName: Name,
  dataAddress: typeof LOOPBACK | null = LOOPBACK,
): Promise<Started> {
  const warnings: Started['warnings'] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (event, fields) => void warnings.push({ event, reason: String(fields?.['reason']) }),
  };
  const links = await startNodeLinks({
    ...{ server: server(), nodeName, key: keys[nodeName], nodes, dataAddress, logger },
  });
  t.after(() => links[Symbol.asyncDispose]());
  return { links, warnings };
}

function pathTo({ links }: Started, node: string): string | undefined {
  return links.describe().links.find((link) => link.node === node)?.path;
}

/** Both ends of a stream from a to b, on which a has sent one byte. */
async function connectBoth(a: Started, b: Started): Promise<[Duplex, Duplex]> {
  const arrived = Promise.withResolvers<Duplex>();
  b.links.onStream = arrived.resolve;
  const near = await a.links.open('b');
  near.write('!');
  const far = await arrived.promise;
  assert.equal(String(await readBytes(far, 1)), '!');
  return [near, far];
}

async function readBytes(stream: Duplex, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read(length) as Buffer | null;
    if (bytes !== null) return bytes;
    await once(stream, 'readable');
  }
}

async function allOf(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream.iterator({ destroyOnReturn: false }))
    chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Announces another address in place of a node's own. */
async function announce(name: Name, port: number, fingerprint?: string): Promise<void> {
  const announced = await nodes.dataAddressOf(name);
  assert.ok(announced !== undefined);
  await nodes.announceDataAddress(name, encodeKey(keys[name].publicKey), {
    ...{ host: '127.0.0.1', port, fingerprint: fingerprint ?? announced.fingerprint },
  });
}

async function listen(t: TestContext, listening: Server): Promise<number> {
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const sockets = new Set<Socket>();
  listening.on('connection', (socket: Socket) => sockets.add(socket));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  });
  // A TCP server's address is an object.
  return (listening.address() as AddressInfo).port;
}

/** Passes connections to a node on, keeps all bytes, and can cut or hold the wire. */
async function relay(t: TestContext, name: Name) {
  const { port = 0 } = (await nodes.dataAddressOf(name)) ?? {};
  const heard: Buffer[] = [];
  const pairs: Socket[] = [];
  let isHeld = false;
  const listening = createServer((left) => {
    // As for dropped packets, the system accepts nothing.
    if (isHeld) return void left.destroy();
    const right = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [left, right],
      [right, left],
    ] as const) {
      pairs.push(from);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
      from.on('data', (bytes: Buffer) => {
        heard.push(bytes);
        to.write(bytes);
      });
    }
  });
  await announce(name, await listen(t, listening));
  return {
    heard: () => Buffer.concat(heard),
    cut: () => {
      for (const socket of pairs) socket.destroy();
    },
    hold: () => {
      isHeld = true;
      for (const socket of pairs) socket.pause();
    },
    /** The packets of held connections still do not arrive. */
    passNew: () => (isHeld = false),
    release: () => {
      for (const socket of pairs) socket.resume();
    },
  };
}

test('megabytes arrive whole in both directions without the store', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const ear = new Redis({ path: redis.socket });
  t.after(() => ear.disconnect());
  let published = 0;
  await ear.psubscribe('{gnt}:node:*');
  ear.on('pmessage', () => (published += 1));
  const [near, far] = await connectBoth(a, b);
  const [there, back] = [randomBytes(9_000_000), randomBytes(5_000_001)];
  near.end(there);
  assert.ok((await allOf(far)).equals(there));
  // The other direction stays open.
  far.end(back);
  assert.ok((await allOf(near)).equals(back));
  await ear.ping();
  assert.equal(published, 0);
  assert.equal(pathTo(a, 'b'), 'direct');
  assert.deepEqual([...a.warnings, ...b.warnings], []);
});

test('a sender waits for a reader that does not read, and other streams continue', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const [near, far] = await connectBoth(a, b);
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024);
  while (sent < 20_000_000) {
    const isWritten = new Promise<boolean>((resolve) => near.write(chunk, () => resolve(true)));
    if (!(await Promise.race([isWritten, sleep(500, false)]))) break;
    sent += chunk.length;
  }
  assert.ok(sent < 4_000_000, `${sent} bytes were taken`);
  const [other, otherFar] = await connectBoth(a, b);
  const bytes = randomBytes(2_000_000);
  other.end(bytes);
  assert.ok((await allOf(otherFar)).equals(bytes));
  near.end();
  assert.ok((await allOf(far)).length >= sent);
});

test('a stream that was cut never looks complete to its reader', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const wire = await relay(t, 'b');
  for (const cut of [
    (near: Duplex) => near.destroy(),
    (near: Duplex) => near.destroy(new Error('the job was cancelled')),
    () => wire.cut(),
  ])
    for (const isReading of [true, false]) {
      const [near, far] = await connectBoth(a, b);
      near.write(randomBytes(300_000));
      const ended = isReading ? allOf(far) : undefined;
      const closed = new Promise<void>((resolve) => far.once('close', () => resolve()));
      await sleep(20);
      cut(near);
      await (ended === undefined ? closed : assert.rejects(ended, { code: 'ECONNRESET' }));
      assert.ok(!far.readableEnded);
      near.destroy();
    }
});

test('a reader gets all bytes of a sender that ends and closes at once', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  for (const length of [10, 400_000, 3_000_000]) {
    const [near, far] = await connectBoth(a, b);
    const bytes = randomBytes(length);
    far.end(bytes);
    far.once('finish', () => far.destroy());
    if (length < 500_000) await once(far, 'close');
    assert.ok((await allOf(near)).equals(bytes), `${length} bytes`);
    near.destroy();
  }
});

test('the wire carries no plaintext and no node name', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const wire = await relay(t, 'b');
  const [near, far] = await connectBoth(a, b);
  const canary = randomBytes(24).toString('hex');
  near.end(`secret ${canary}`);
  assert.equal(String(await allOf(far)), `secret ${canary}`);
  far.end(canary);
  assert.equal(String(await allOf(near)), canary);
  assert.ok(wire.heard().length > 1000);
  assert.ok(!wire.heard().includes(canary));
  assert.ok(!wire.heard().includes('CONNECT'));
});

test('a node that announces no address is reached through the store', async (t) => {
  const a = await start(t, 'a');
  const earlier = await startPeerLink({
    ...{ server: server(), nodeName: 'b', key: keys.b, nodes, logger: silentLogger },
  });
  t.after(() => earlier[Symbol.asyncDispose]());
  await nodes.announceDataAddress('b', encodeKey(keys.b.publicKey), null);
  const arrived = Promise.withResolvers<Duplex>();
  earlier.onStream = arrived.resolve;
  const near = await a.links.open('b');
  near.end('old');
  assert.equal(String(await allOf(await arrived.promise)), 'old');
  assert.match((await a.links.probe('b')).reason ?? '', /no data address/);
});

test('a blocked port is reported, and streams go through the store until it is open', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const open = await nodes.dataAddressOf('b');
  const closed = createServer();
  const port = await listen(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  await announce('b', port);
  const [near, far] = await connectBoth(a, b);
  near.end('by the store');
  assert.equal(String(await allOf(far)), 'by the store');
  assert.equal(pathTo(a, 'b'), 'store');
  await connectBoth(a, b);
  const reported = a.warnings.filter(({ event }) => event === 'data-link.unavailable');
  assert.equal(reported.length, 1);
  assert.match(reported[0]?.reason ?? '', /ECONNREFUSED/);
  await announce('b', open?.port ?? 0);
  await connectBoth(a, b);
  assert.equal(pathTo(a, 'b'), 'direct');
});

test('an address that answers nothing delays a stream by seconds only', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  await announce('b', await listen(t, createServer()));
  const sinceMs = performance.now();
  await connectBoth(a, b);
  assert.ok(performance.now() - sinceMs < 10_000);
  assert.match((await a.links.probe('b')).reason ?? '', /no answer within 3 s/);
});

test('a server with another key gets no byte of HTTP', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const { pem } = await makeNodeCertificate('b');
  let heard = 0;
  const impostor = createTlsServer({ key: pem, cert: pem, requestCert: true, rejectUnauthorized: false }, (socket) => socket.on('data', (bytes) => (heard += bytes.length)).on('error', () => undefined)); // prettier-ignore
  await announce('b', await listen(t, impostor));
  await connectBoth(a, b);
  assert.match(a.warnings[0]?.reason ?? '', /not the announced one/);
  assert.equal(heard, 0);
});

/** Connects to b with a certificate. Resolves with the bytes of b until it closes. */
async function connectAs(pem: string | undefined, isTalking = true): Promise<number> {
  const { port = 0 } = (await nodes.dataAddressOf('b')) ?? {};
  const socket = connectTls({
    ...{ port, host: '127.0.0.1', rejectUnauthorized: false },
    ...(pem !== undefined && { key: pem, cert: pem }),
  });
  let heard = 0;
  socket.on('data', (bytes) => (heard += bytes.length)).on('error', () => undefined);
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
  if (isTalking && !socket.destroyed) {
    const session = connectHttp2('http://b', { createConnection: () => socket });
    session.on('error', () => undefined);
    session.request({ ':method': 'CONNECT', ':authority': 'b' }).on('error', () => undefined);
  }
  if (!socket.destroyed) await once(socket, 'close');
  return heard;
}

test('unknown keys are refused by name before any HTTP', async (t) => {
  const [, b] = [await start(t, 'a'), await start(t, 'b')];
  let streams = 0;
  b.links.onStream = () => (streams += 1);
  const { pem: stranger } = await makeNodeCertificate('a');
  const { pem: unknown } = await makeNodeCertificate('c');
  assert.equal(await connectAs(stranger, false), 0);
  for (const pem of [stranger, unknown, undefined]) await connectAs(pem);
  assert.equal(streams, 0);
  assert.match(b.warnings[0]?.reason ?? '', /the key is not the one of node 'a'/);
});

test('a removed node is refused on an open connection and on a new one', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  await connectBoth(a, b);
  assert.equal(pathTo(a, 'b'), 'direct');
  const announced = await nodes.dataAddressOf('a');
  await nodes.remove('a', 1);
  // A read record counts for a second.
  await sleep(1100);
  t.after(async () => {
    keys.a = nacl.box.keyPair();
    await nodes.register('a', encodeKey(keys.a.publicKey));
  });
  let streams = 0;
  b.links.onStream = () => (streams += 1);
  // The store refuses it too.
  await assert.rejects(a.links.open('b'), (error) => isAppError(error, 'NODE_UNREACHABLE'));
  // The record of the address alone does not help.
  assert.ok(announced !== undefined);
  await nodes.announceDataAddress('a', encodeKey(keys.a.publicKey), announced);
  assert.equal(await nodes.dataAddressOf('a'), undefined);
  await a.links.probe('b');
  assert.equal(streams, 0);
  assert.match(b.warnings[0]?.reason ?? '', /node 'a' was removed/);
});

test('the open streams of a removed node end, in both directions', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const arrived: Duplex[] = [];
  for (const { links } of [a, b]) links.onStream = (stream) => arrived.push(stream);
  const opened = [await a.links.open('b'), await b.links.open('a')];
  await until(() => arrived.length === 2, { everyMs: 20 });
  assert.deepEqual([pathTo(a, 'b'), pathTo(b, 'a')], ['direct', 'direct']);
  await nodes.remove('a', 1);
  t.after(async () => {
    keys.a = nacl.box.keyPair();
    await nodes.register('a', encodeKey(keys.a.publicKey));
  });
  const closed = (stream: Duplex): Promise<void> =>
    new Promise((resolve) => stream.on('error', () => undefined).once('close', resolve));
  await Promise.all([...opened, ...arrived].map(closed));
});

test('silent strangers are disconnected, and keep neither slots nor nodes away', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  b.links.onStream = () => undefined;
  const { port = 0 } = (await nodes.dataAddressOf('b')) ?? {};
  const strangers = Array.from({ length: 200 }, () => connect(port, '127.0.0.1'));
  t.after(() => strangers.forEach((socket) => socket.destroy()));
  for (const socket of strangers) socket.on('error', () => undefined);
  const ends = strangers.map((socket) => once(socket.resume(), 'close'));
  // One network has 16 slots, and the node's own connection comes from it too.
  await Promise.all(ends.slice(20));
  const isKept = (socket: Socket): boolean => !socket.destroyed;
  assert.ok(strangers.filter(isKept).length <= 16);
  assert.ok(b.warnings.some(({ event }) => event === 'data-link.refused'));
  const sinceMs = performance.now();
  await Promise.all(ends);
  assert.ok(performance.now() - sinceMs < 20_000);
  assert.equal((await a.links.probe('b')).path, 'direct');
});

test('one node gets no more than its share of streams', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const arrived: Duplex[] = [];
  b.links.onStream = (stream) => void arrived.push(stream);
  const opening = Array.from({ length: 300 }, () => a.links.open('b').catch(() => undefined));
  await Promise.all(opening);
  assert.equal(pathTo(a, 'b'), 'store');
  // Four fifths of 256, on each of the two ways.
  assert.ok(arrived.length >= 204 && arrived.length <= 2 * 205, `${arrived.length} streams`);
  for (const stream of arrived) stream.destroy();
});

test('a connection whose packets are dropped gets no new streams, and open ones keep it', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const wire = await relay(t, 'b');
  const [near, far] = await connectBoth(a, b);
  wire.hold();
  assert.match((await a.links.probe('b')).reason ?? '', /no answer within 3 s/);
  assert.equal(a.warnings.at(-1)?.event, 'data-link.unavailable');
  wire.passNew();
  assert.equal((await a.links.probe('b')).path, 'direct');
  wire.release();
  near.end('still here');
  assert.equal(String(await allOf(far)), 'still here');
  await connectBoth(a, b);
  assert.equal(pathTo(a, 'b'), 'direct');
});

test('a node that refuses a stream while it starts gets the next one directly', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  b.links.onStream = (stream) => void stream.destroy();
  assert.equal((await a.links.probe('b')).path, 'store');
  await connectBoth(a, b);
  assert.equal(pathTo(a, 'b'), 'direct');
  assert.deepEqual(a.warnings, []);
});
