import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { openReplayGuard } from '#shared/store/replay-guard.ts';
import { makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store } from '#shared/store/store.ts';
import { parseStoreUrl } from '#shared/store/store-url.ts';
import {
  type SentinelGroup,
  type SentinelRedis,
  startSentinels,
} from '../../noded/support/redis-sentinel.ts';

/** A store of a master and two replicas, watched by real Sentinels. */
let group: SentinelGroup;
let store: Store;

before(async () => {
  group = await startSentinels(2);
  const server = parseStoreUrl(`${group.url}?replicas=1`);
  store = await createRedisStore({ server, logger: silentLogger });
});
// A failed test must not leave paused Sentinels to the next one.
afterEach(() => group.resumeSentinels());
after(async () => {
  await store.close();
  await group.stop();
});

async function write(id: string): Promise<void> {
  await store.commit([{ collection: 'things', id, expected: 'absent', value: id }]);
}

/** Retries a write until the Sentinels confirm it. */
async function writeAtLast(id: string): Promise<void> {
  for (const deadlineMs = Date.now() + 60_000; ; await sleep(200)) {
    try {
      await store.commit([{ collection: 'things', id, expected: 'any', value: id }]);
      return;
    } catch (error) {
      if (Date.now() > deadlineMs) throw error;
    }
  }
}

test('a URL that names one of three Sentinels is a risk that is told', async () => {
  const one = group.url.replace(/,[^/]*/, '');
  const server = parseStoreUrl(`${one}?replicas=1`);
  const other = await createRedisStore({ server, logger: silentLogger });
  const told = (await other.risks?.())?.map(({ message }) => message) ?? [];
  await other.close();
  assert.ok(told.some((message) => message.startsWith('its URL names 1 of 3 Sentinels')));
  assert.ok(!(await store.risks?.())?.some(({ message }) => message.includes('names')));
});

test('a replica that dies keeps nobody from writing', async () => {
  await write('before');
  const [replica] = await group.replicas();
  assert.ok(replica);
  const master = await group.master();
  await replica.kill();
  await write('after');
  replica.start(master);
  await group.settled();
  await write('later');
});

test('writes that come at once after a replica died share what Sentinels say', async () => {
  await write('of three');
  const [replica] = await group.replicas();
  assert.ok(replica);
  const master = await group.master();
  await replica.kill();
  const before = await group.connectionsToSentinel();
  const names = Array.from({ length: 60 }, (_, index) => `at once ${index}`);
  await Promise.all(names.map(write));
  const made = (await group.connectionsToSentinel()) - before;
  assert.ok(made > 1 && made < names.length / 4, `${made} connections`);
  replica.start(master);
  await group.settled();
});

/** Promotes a replica before the other replica and the master learn of it. */
async function depose(): Promise<Record<'master' | 'promoted' | 'deaf', SentinelRedis>> {
  const master = await group.master();
  const [promoted, deaf] = await group.replicas();
  assert.ok(promoted && deaf);
  group.pauseSentinels();
  await promoted.ask('REPLICAOF', 'NO', 'ONE');
  const copies = async (): Promise<number> => {
    const [, , all] = (await master.ask('ROLE')) as [string, number, unknown[]];
    return all.length;
  };
  while ((await copies()) > 1) await sleep(20);
  return { master, promoted, deaf };
}

test('what a master is given that another one took the place of is not told to be written', async () => {
  await write('known');
  const { master, promoted, deaf } = await depose();
  await assert.rejects(write('lost'), {
    code: 'STORE_UNAVAILABLE',
    message: /failover may be under way/,
  });
  // Its replica has the write, which is all that it promises.
  assert.equal(await deaf.ask('HEXISTS', '{gnt}:c:things', 'lost'), 1);
  await promoted.ask('REPLICAOF', '127.0.0.1', master.port);
  group.resumeSentinels();
  await writeAtLast('again');
  await group.settled();
  await write('as ever');
});

test('what a master has that another one took the place of was never seen', async (t) => {
  const key = ringOf(makeClusterKey());
  const folder = await mkdtemp(join(tmpdir(), 'gnt-master-check-'));
  t.after(() => rm(folder, { recursive: true }));
  const openNode = async (name: string) => {
    const replayGuard = openReplayGuard({
      ...{ path: join(folder, name), clock: systemClock, logger: silentLogger },
    });
    const url = `${group.url}?replicas=1`;
    const { store: sealed } = await openSealedRedis(url, () => key, silentLogger, replayGuard);
    t.after(() => sealed.close());
    return { sealed, replayGuard };
  };
  const [writer, reader] = [await openNode('writer'), await openNode('reader')];
  const lan = { collection: 'networks', id: 'lan' };
  const untilNoted = async (stamp: number): Promise<void> => {
    while (reader.replayGuard.isNews({ ...lan, stamp })) {
      await reader.sealed.get('networks', 'lan');
      await sleep(50);
    }
  };
  const beforeA = writer.replayGuard.nextStamp();
  await writer.sealed.commit([{ ...lan, expected: 'absent', value: 'a' }]);
  await untilNoted(beforeA);
  const beforeB = writer.replayGuard.nextStamp();
  const { master, promoted } = await depose();
  const refused = writer.sealed.commit([{ ...lan, expected: 'any', value: 'b' }]);
  await assert.rejects(refused, {
    code: 'STORE_UNAVAILABLE',
    message: /failover may be under way/,
  });
  assert.equal((await reader.sealed.get('networks', 'lan'))?.value, 'b');
  await sleep(1000); // more than it takes to ask
  assert.ok(reader.replayGuard.isNews({ ...lan, stamp: beforeB }));
  await promoted.ask('REPLICAOF', '127.0.0.1', master.port);
  group.resumeSentinels();
  await untilNoted(beforeB);
  await group.settled();
});

test('a user who may not ask for INFO writes as below no Sentinels', async () => {
  const rights = ['on', '>word', '~*', '&*', '+@all', '-info'];
  for (const server of [await group.master(), ...(await group.replicas())])
    await server.ask('ACL', 'SETUSER', 'mute', ...rights);
  const server = parseStoreUrl(`${group.url.replace('//', '//mute:word@')}?replicas=1`);
  const mute = await createRedisStore({ server, logger: silentLogger });
  try {
    await mute.commit([{ collection: 'things', id: 'mute', expected: 'absent', value: 'x' }]);
  } finally {
    await mute.close();
  }
});
