import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import nacl from 'tweetnacl';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { sealGreeting } from '../../../../noded/cluster/peers/handshake.ts';
import { startPeerLink, type PeerLink } from '../../../../noded/cluster/peers/peer-link.ts';
import type { PeerStream } from '../../../../noded/cluster/peers/peer-stream.ts';
import { MAX_STREAMS } from '../../../../noded/cluster/peers/receive-window.ts';
import { encodeKey } from '../../../../noded/records/node-key.ts';
import { createNodeRegistry } from '../../../../noded/records/node-registry.ts';
import { startRedis } from '../../support/redis-server.ts';

/** Streams that a node asks for which has the cluster's keys, and means it ill or is broken. */
const ASKED = 65_536;
const AT_ONCE = 1024;
/** Less than the lifetime of a silent stream. */
const STAY_MS = 4000;
/** Of all streams, what one node gets by itself. */
const PART = 4 / 5;
const HELLO = 4;
const WELCOME = 2;
const keys = {
  greedy: nacl.box.keyPair(),
  honest: nacl.box.keyPair(),
  asked: nacl.box.keyPair(),
};
type Name = keyof typeof keys;

async function startNodes(t: TestContext) {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const server = { url: `unix:${redis.socket}` };
  const store = await createRedisStore({ server, logger: silentLogger });
  t.after(() => store.close());
  const nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  for (const name of Object.keys(keys) as Name[])
    await nodes.register(name, encodeKey(keys[name].publicKey));
  const start = async (nodeName: Name): Promise<PeerLink> => {
    const options = { server, nodeName, key: keys[nodeName], nodes, logger: silentLogger };
    const link = await startPeerLink(options);
    t.after(() => link[Symbol.asyncDispose]());
    return link;
  };
  const redisOf = (): Redis => {
    const client = new Redis({ path: redis.socket });
    t.after(() => client.disconnect());
    return client;
  };
  return { start, redisOf };
}

/** A hello as the greedy node seals it, each of another stream. */
function makeHello(shared: Uint8Array, key: string): Buffer {
  const id = randomBytes(16);
  const asked = { kind: 'hello', stream: id.toString('hex'), from: 'greedy', to: 'asked' } as const;
  const sealed = sealGreeting({ ...asked, key, answers: null }, shared);
  const name = Buffer.from('greedy');
  return Buffer.concat([Buffer.from([HELLO]), id, Buffer.from([name.length]), name, sealed]);
}

test('a node that requests 65,536 streams gets a share of the limit, and another node still gets a stream', async (t) => {
  const { start, redisOf } = await startNodes(t);
  const asked = await start('asked');
  const honest = await start('honest');
  const arrived = Promise.withResolvers<PeerStream>();
  asked.onStream = arrived.resolve;
  const welcomes: number[] = [];
  const ear = redisOf();
  await ear.subscribe('{gnt}:node:greedy');
  ear.on('messageBuffer', (_channel: Buffer, bytes: Buffer) => {
    if (bytes[0] === WELCOME) welcomes.push(performance.now());
  });
  const shared = nacl.box.before(keys.asked.publicKey, keys.greedy.secretKey);
  const key = encodeKey(nacl.box.keyPair().publicKey);
  const mouth = redisOf();
  for (let sent = 0; sent < ASKED; sent += AT_ONCE) {
    const hellos = Array.from({ length: AT_ONCE }, () => makeHello(shared, key));
    await Promise.all(hellos.map((hello) => mouth.publish('{gnt}:node:asked', hello)));
  }
  let seen = -1;
  while (seen !== welcomes.length) {
    seen = welcomes.length;
    await sleep(300);
  }
  const near = await honest.open('asked');
  near.write('!');
  const far = await arrived.promise;
  await once(far, 'readable');
  assert.equal(String(far.read()), '!');
  // None of them is confirmed: each stays for a while, and ends for another one.
  const most = Math.max(
    ...welcomes.map((from) => welcomes.filter((at) => at >= from && at < from + STAY_MS).length),
  );
  t.diagnostic(`${welcomes.length} of ${ASKED} were answered, ${most} at once`);
  assert.ok(most > 0 && most <= Math.ceil(MAX_STREAMS * PART), `${most} at once`);
});
