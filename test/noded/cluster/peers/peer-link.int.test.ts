import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { after, before, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import nacl from 'tweetnacl';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store } from '#shared/store/store.ts';
import { encodeKey } from '../../../../noded/records/node-key.ts';
import { createNodeRegistry, type NodeRegistry } from '../../../../noded/records/node-registry.ts';
import { presenceOf } from '../../../../noded/cluster/peers/ask-peer.ts';
import { startPeerLink, type PeerLink } from '../../../../noded/cluster/peers/peer-link.ts';
import type { PeerStream } from '../../../../noded/cluster/peers/peer-stream.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';

/** Two nodes and a stranger on one real Redis. */
let redis: RedisServer;
let stranger: Redis;
let store: Store;
let nodes: NodeRegistry;
const keys = { a: nacl.box.keyPair(), b: nacl.box.keyPair() };

before(async () => {
  redis = await startRedis();
  store = await createRedisStore({ server: server(), logger: silentLogger });
  nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  for (const name of ['a', 'b'] as const)
    await nodes.register(name, encodeKey(keys[name].publicKey));
  await nodes.register('silent', encodeKey(nacl.box.keyPair().publicKey));
  stranger = new Redis({ path: redis.socket });
});

after(async () => {
  stranger.disconnect();
  await store.close();
  await redis.stop();
});

const server = (): { url: string } => ({ url: `unix:${redis.socket}` });

async function start(
  t: TestContext,
  nodeName: 'a' | 'b',
  at: { url: string } = server(),
): Promise<PeerLink> {
  const key = keys[nodeName];
  const link = await startPeerLink({
    server: at,
    nodeName,
    key,
    nodes,
    logger: silentLogger,
  });
  t.after(() => link[Symbol.asyncDispose]());
  return link;
}

/** Everything that is said on any channel, as Redis sees it. */
async function overhear(t: TestContext): Promise<{ channel: string; bytes: Buffer }[]> {
  const heard: { channel: string; bytes: Buffer }[] = [];
  const ear = new Redis({ path: redis.socket });
  t.after(() => ear.disconnect());
  await ear.psubscribe('*');
  ear.on('pmessageBuffer', (_pattern: string, channel: string, bytes: Buffer) =>
    heard.push({ channel: String(channel), bytes }),
  );
  return heard;
}

/** Both ends of a stream from a to b, on which a has said one byte. */
async function connect(t: TestContext): Promise<[PeerStream, PeerStream]> {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const arrived = Promise.withResolvers<PeerStream>();
  b.onStream = arrived.resolve;
  const near = await a.open('b');
  near.write('!');
  const far = await arrived.promise;
  const [byte] = (await once(far, 'data')) as [Buffer];
  assert.equal(String(byte), '!');
  far.pause();
  return [near, far];
}

/** Reads until the end of this direction. The other direction stays open. */
async function allOf(stream: PeerStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream.iterator({ destroyOnReturn: false }))
    chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
const closeOf = (stream: PeerStream): Promise<void> =>
  new Promise((resolve) => stream.once('close', () => resolve()));
const textOf = async (stream: PeerStream): Promise<string> => String(await allOf(stream));

test('megabytes arrive whole in both directions, and each direction ends separately', async (t) => {
  const [near, far] = await connect(t);
  const [there, back] = [randomBytes(3_000_000), randomBytes(2_000_001)];
  near.end(there);
  assert.ok((await allOf(far)).equals(there));
  far.end(back);
  assert.ok((await allOf(near)).equals(back));
});

test('a sender waits for a reader that does not read', async (t) => {
  const [near, far] = await connect(t);
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024);
  while (sent < 10_000_000) {
    const isWritten = new Promise<boolean>((resolve) => near.write(chunk, () => resolve(true)));
    if (!(await Promise.race([isWritten, sleep(300, false)]))) break;
    sent += chunk.length;
  }
  assert.ok(sent >= 128 * 1024 && sent <= 1024 * 1024, `${sent} bytes were taken`);
  near.end();
  assert.ok((await allOf(far)).length >= sent);
});

test('64 streams can be opened at once', async (t) => {
  const [a] = [await start(t, 'a'), await start(t, 'b')];
  const streams = await Promise.all(Array.from({ length: 64 }, () => a.open('b')));
  assert.equal(new Set(streams).size, 64);
});

test('carries HTTP, and the end of either side ends the other', async (t) => {
  const [a, b] = [await start(t, 'a'), await start(t, 'b')];
  const gone = Promise.withResolvers<undefined>();
  const api = createServer((asked, answer) => {
    if (asked.url === '/echo') asked.pipe(answer);
    else answer.once('close', () => gone.resolve(undefined)).write('waiting');
  });
  let last: PeerStream | undefined;
  b.onStream = (stream) => {
    last = stream;
    api.emit('connection', stream);
  };
  const ask = async (path: string, body: string) => {
    const stream = await a.open('b');
    const asking = request({ path, method: 'POST', createConnection: () => stream });
    asking.on('error', () => undefined); // the answer fails too
    asking.end(body);
    const [answer] = (await once(asking, 'response')) as [import('node:http').IncomingMessage];
    return answer;
  };
  const long = randomBytes(400_000).toString('hex');
  assert.equal(await text(await ask('/echo', long)), long);
  const waiting = await ask('/wait', '');
  await once(waiting, 'data');
  waiting.destroy();
  await gone.promise;
  const cut = await ask('/wait', '');
  await once(cut, 'data');
  last?.destroy();
  await assert.rejects(text(cut), { code: 'ECONNRESET' });
});

test('an unknown or unreachable node is named in the error', async (t) => {
  const a = await start(t, 'a');
  await assert.rejects(
    a.open('nobody'),
    (error) => isAppError(error, 'NODE_NOT_FOUND') && error.message.includes("'nobody'"),
  );
  await assert.rejects(
    a.open('silent'),
    (error) => isAppError(error, 'NODE_UNREACHABLE') && error.message.includes("'silent'"),
  );
  // A listener without the key.
  const deaf = new Redis({ path: redis.socket });
  t.after(() => deaf.disconnect());
  await deaf.subscribe('{gnt}:node:silent');
  await assert.rejects(a.open('silent'), (error) => isAppError(error, 'NODE_UNREACHABLE'));
  assert.equal(await presenceOf(a, 'silent'), 'mute');
  assert.equal(await presenceOf(a, 'b'), 'gone');
  await start(t, 'b');
  assert.equal(await presenceOf(a, 'b'), 'answers');
});

test('Redis carries no plaintext of a stream', async (t) => {
  const heard = await overhear(t);
  const [near, far] = await connect(t);
  const secret = randomBytes(24).toString('hex');
  near.end(`secret ${secret}`);
  assert.ok((await textOf(far)).includes(secret));
  const isHeard = (value: string): boolean => heard.some(({ bytes }) => bytes.includes(value));
  assert.ok(heard.length >= 4);
  assert.ok(!isHeard(secret));
  await stranger.publish('any', `planted ${secret}`);
  await stranger.ping();
  while (!isHeard(secret)) await sleep(5);
});

test('foreign, replayed and random messages do not change a stream', async (t) => {
  const heard = await overhear(t);
  const [near, far] = await connect(t);
  const messages = [...heard];
  const id = messages.at(-1)?.bytes.subarray(1, 17) ?? Buffer.alloc(16);
  for (const node of ['a', 'b']) {
    const channel = `{gnt}:node:${node}`;
    for (const { bytes } of messages) await stranger.publish(channel, bytes);
    for (const kind of [0, 1, 2, 3, 4, 9]) {
      const head = Buffer.concat([Buffer.from([kind]), id]);
      for (const size of [0, 1, 40, 60_000, 200_000])
        await stranger.publish(channel, Buffer.concat([head, randomBytes(size)]));
    }
    await stranger.publish(channel, '');
    await stranger.publish(
      channel,
      Buffer.concat([Buffer.from([4]), randomBytes(16), Buffer.from([1, 97]), randomBytes(100)]),
    );
  }
  near.end('still here');
  assert.equal(await textOf(far), 'still here');
  far.end('and back');
  assert.equal(await textOf(near), 'and back');
});

test('a replayed hello opens no stream', async (t) => {
  const heard = await overhear(t);
  const [near, far] = await connect(t);
  const hello = heard.find(({ channel, bytes }) => channel.endsWith(':b') && bytes[0] === 4);
  const first = heard.find(({ channel, bytes }) => channel.endsWith(':b') && bytes[0] === 3);
  assert.ok(hello !== undefined && first !== undefined);
  near.destroy();
  await closeOf(far);
  const welcomes = (): number => heard.filter(({ bytes }) => bytes[0] === 2).length;
  const before = welcomes();
  await stranger.publish(hello.channel, hello.bytes);
  while (welcomes() === before) await sleep(5);
  // The answer has a key that the replaying node lacks, so it cannot open the earlier frames.
  await stranger.publish(first.channel, first.bytes);
  await stranger.ping();
  await sleep(50);
});

test('a lost connection to Redis ends a stream at once', async (t) => {
  const [near, far] = await connect(t);
  far.resume();
  const closed = [near, far].map(closeOf);
  await stranger.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await Promise.all(closed);
});

test('a second daemon with the key of a running node is refused', async (t) => {
  const first = await start(t, 'a');
  await assert.rejects(start(t, 'a'), (error) => isAppError(error, 'CONFLICT'));
  await first[Symbol.asyncDispose]();
  await start(t, 'a');
});
