import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { openReplayGuard, type ReplayGuard } from '#shared/store/replay-guard.ts';
import { makeClusterKey, ringOf, type SealedStore } from '#shared/store/sealed-store.ts';
import { startSentinels, type SentinelGroup } from '../../noded/support/redis-sentinel.ts';

/** Two nodes of a Redis with a replica, watched by real Sentinels, that fails over. */
let group: SentinelGroup;
let directory: string;
const stores: SealedStore[] = [];
const key = makeClusterKey();

before(async () => {
  group = await startSentinels();
  directory = await mkdtemp(join(tmpdir(), 'gnt-acknowledgement-'));
});
after(async () => {
  for (const store of stores) await store.close();
  await group.stop();
  await rm(directory, { recursive: true });
});

async function openNode(name: string): Promise<{ store: SealedStore; replayGuard: ReplayGuard }> {
  const replayGuard = openReplayGuard({
    ...{ path: join(directory, name), clock: systemClock, logger: silentLogger },
  });
  const url = `${group.url}?replicas=1`;
  const { store } = await openSealedRedis(url, () => ringOf(key), silentLogger, replayGuard);
  stores.push(store);
  return { store, replayGuard };
}

const written = { collection: 'networks', id: 'lan' } as const;

test('what replicas have is noted; what a failover takes back was never seen', async () => {
  const [writer, reader] = [await openNode('writer'), await openNode('reader')];
  const [revision = 0] = await writer.store.commit([
    { ...written, expected: 'absent', value: 'a' },
  ]);
  await reader.store.get('networks', 'lan');
  while (reader.replayGuard.knownIds('networks', Number.POSITIVE_INFINITY).length === 0)
    await sleep(50);
  const [master, replica] = [await group.master(), await group.replica()];
  await replica.kill();
  const refused = writer.store.commit([{ ...written, expected: revision, value: 'b' }]);
  await assert.rejects(refused, { code: 'STORE_UNAVAILABLE' });
  assert.equal((await reader.store.get('networks', 'lan'))?.value, 'b');
  assert.equal((await reader.store.list('networks'))[0]?.value, 'b');
  await sleep(1000); // more than it takes to ask
  await master.kill();
  replica.start(master);
  const promoted = await group.master();
  master.start(promoted);
  await group.settled();
  for (const { store } of [writer, reader]) {
    assert.equal((await store.get('networks', 'lan'))?.value, 'a');
    assert.equal((await store.list('networks'))[0]?.problem, undefined);
  }
});
