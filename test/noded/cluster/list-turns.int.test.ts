import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSealedStore, makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import { KIB } from '#shared/units/bytes.ts';
import { encodeArray, streamBegun } from '../../../noded/api/http/stream-slices.ts';
import {
  createOwnOverview,
  type OverviewSources,
} from '../../../noded/cluster/membership/overview.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { type Stretches, threadStretches } from '../../lab/thread-time.ts';
import { instanceRecord } from '../support/records.ts';
import { startRedis, type RedisServer } from '../support/redis-server.ts';

let redis: RedisServer;
before(async () => {
  redis = await startRedis({});
});
after(() => redis.stop());

/** Enough that one garbage collection takes a small part of the time. */
const COUNT = 96;

test('everybody else has turns amid a slice of instances with large documents', async (t) => {
  const plain = await createRedisStore({
    ...{ server: { url: `unix:${redis.socket}` }, logger: silentLogger },
  });
  const key = makeClusterKey();
  const store = createSealedStore(plain, () => ringOf(key));
  t.after(() => store.close());
  const problems = createRecordProblems(silentLogger);
  const instances = createInstanceRepository(store, systemClock, problems);
  const clusters = createClusterRepository(store, systemClock);
  await clusters.ensure();
  for (let n = 0; n < COUNT; n += 1) {
    const record = instanceRecord({ name: `web${n}.example.com` }, { uuid: randomUUID() });
    const value = { ...record, userData: 'x'.repeat(256 * KIB) };
    await store.commit([{ collection: 'instances', id: value.uuid, expected: 'absent', value }]);
  }
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  t.after(() => index[Symbol.asyncDispose]());
  await index.list();
  const overview = createOwnOverview({
    ...{ instances, index, clusters, nodeName: 'node1', owns: () => true },
    ...{ runner: { running: () => undefined }, orphans: { list: () => [] } },
    outcomes: { removalOf: () => undefined },
    guestReports: { report: () => null },
    lifecycles: { explain: () => null },
    bootViews: { state: () => null },
    describeNode: () => Promise.reject(new Error('nobody asks')),
    listOs: () => Promise.resolve([]),
  } satisfies OverviewSources);
  const list = async (): Promise<readonly string[]> => {
    const stream = await streamBegun(overview.instanceSlices(), encodeArray);
    return (await stream.toArray()) as string[];
  };
  // An unmeasured first run, which includes compilation and checks the answer.
  const chunks = await list();
  assert.equal((JSON.parse(chunks.join('')) as unknown[]).length, COUNT);
  const isFine = ({ allMs, longestMs }: Stretches): boolean => longestMs * 5 < allMs;
  const stretches = await threadStretches(list, isFine);
  assert.ok(isFine(stretches), JSON.stringify(stretches));
});
