import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import nacl from 'tweetnacl';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { encodeKey } from '../../../../noded/records/node-key.ts';
import { createNodeRegistry } from '../../../../noded/records/node-registry.ts';
import { startPeerLink, type PeerLink } from '../../../../noded/cluster/peers/peer-link.ts';
import type { PeerStream } from '../../../../noded/cluster/peers/peer-stream.ts';
import { startRedis } from '../../support/redis-server.ts';
import { startWay } from '../../support/slow-way.ts';

test('a node that stops reading for a while loses none of 200 streams', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const url = `unix:${redis.socket}`;
  const store = await createRedisStore({ server: { url }, logger: silentLogger });
  t.after(() => store.close());
  const stranger = new Redis({ path: redis.socket });
  t.after(() => stranger.disconnect());
  const nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  const start = async (nodeName: string, server: { readonly url: string }): Promise<PeerLink> => {
    const key = nacl.box.keyPair();
    await nodes.register(nodeName, encodeKey(key.publicKey));
    const link = await startPeerLink({ server, nodeName, key, nodes, logger: silentLogger });
    t.after(() => link[Symbol.asyncDispose]());
    return link;
  };
  const way = await startWay(t, redis);
  const [a, b] = [await start('a', { url }), await start('b', way)];
  const arrived: PeerStream[] = [];
  const all = Promise.withResolvers<undefined>();
  const COUNT = 200;
  b.onStream = (stream) => {
    stream.resume();
    if (arrived.push(stream) === COUNT) all.resolve(undefined);
  };
  const senders: PeerStream[] = [];
  while (senders.length < COUNT) {
    const opened = await Promise.all(Array.from({ length: 10 }, () => a.open('b')));
    // A stream that says nothing ends after five seconds, which all of them may take to be opened.
    for (const sender of opened) sender.write('!');
    senders.push(...opened);
  }
  await all.promise;
  way.hold();
  const content = Buffer.alloc(192 * 1024);
  for (const sender of senders) sender.end(content);
  // What Redis keeps for a subscriber that does not read: it ends one of 32 MiB at once, and one
  // that has 8 MiB for a minute.
  const kept = async (): Promise<number> => {
    const clients = String(await stranger.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    const sizes = [...clients.matchAll(/ omem=(\d+) /g)].map(([, size]) => Number(size));
    return Math.max(0, ...sizes);
  };
  const isWhole = (): boolean => ![...senders, ...arrived].some(({ destroyed }) => destroyed);
  let before = 0;
  try {
    const giveUpAtMs = performance.now() + 30_000;
    for (let now = await kept(); isWhole() && performance.now() < giveUpAtMs; now = await kept()) {
      if (now > 0 && now === before) break;
      before = now;
      await sleep(200);
    }
  } finally {
    way.letGo();
  }
  assert.ok(isWhole(), 'streams were ended');
  assert.ok(before > 0 && before < 8 * 2 ** 20, `${before} bytes wait in Redis`);
  const sizes = Promise.all(
    arrived.map(async (stream) => {
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
      await once(stream, 'end');
      return bytes;
    }),
  );
  assert.deepEqual(new Set(await sizes), new Set([content.length]));
});
