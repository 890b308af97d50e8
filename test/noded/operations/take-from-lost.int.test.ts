import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';
import {
  createForeignLeases,
  type ForeignLeases,
} from '../../../noded/storage/fencing/foreign-leases.ts';
import { NODE_LEASES } from '../../../noded/storage/fencing/node-lease.ts';
import { takeFromLost } from '../../../noded/operations/failover-instance.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { instanceRecord } from '../support/records.ts';

const LOST = 'node1.example.com';
const [TWO, THREE] = ['node2.example.com', 'node3.example.com'];
const TTL_MS = 60_000;
const record = (n: number) => instanceRecord({ name: `web${n}.example.com` }, {
  ...{ uuid: `00000000-0000-4000-8000-00000000000${n}`, installState: 'installed' },
}); // prettier-ignore
let dir = '';
let store: Store;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-take-'));
  store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  const lease = { schema: 1, ttlMs: TTL_MS, renewals: 7, taken: [] };
  await store.commit([
    { collection: NODE_LEASES, id: LOST, expected: 'absent', value: lease },
    ...[1, 2].map(record).map((value) => ({
      ...{ collection: 'instances', id: value.uuid, expected: 'absent' as const, value },
    })),
  ]);
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

/**
 * Creates a node for which the lease is over.
 * @param between runs between its last look and its commit
 */
async function taker(nodeName: string, between: () => Promise<unknown>) {
  const clock = new ManualClock();
  const seen = createForeignLeases({ store, ttlMs: TTL_MS, server: null, clock });
  await assert.rejects(seen.planTaking(LOST, 'x'), { code: 'INSTANCE_STATE' });
  clock.advance(TTL_MS);
  let isFirst = true;
  const leases: ForeignLeases = {
    ...seen,
    planTaking: async (node, uuid) => {
      const write = await seen.planTaking(node, uuid);
      if (isFirst) {
        isFirst = false;
        await between();
      }
      return write;
    },
  };
  const problems = createRecordProblems(silentLogger);
  return { nodeName, leases, instances: createInstanceRepository(store, clock, problems) };
}

const nothing = (): Promise<void> => Promise.resolve();
const leaseOfLost = async (): Promise<unknown> => (await store.get(NODE_LEASES, LOST))?.value;

test('two nodes that take two instances of a lost one at once get one each', async () => {
  const three = await taker(THREE, nothing);
  const two = await taker(TWO, () => takeFromLost(record(2), three));
  const { taken } = await takeFromLost(record(1), two);
  assert.equal(taken.primaryNode, TWO);
  assert.equal((await two.instances.findByUuid(record(2).uuid))?.primaryNode, THREE);
  const both = [record(2).uuid, record(1).uuid];
  assert.deepEqual(await leaseOfLost(), { schema: 1, ttlMs: TTL_MS, renewals: 7, taken: both });
});

test('of two nodes that take the same instance one gets it, and the other one is told which', async () => {
  const three = await taker(THREE, nothing);
  const two = await taker(TWO, () => takeFromLost(record(1), three));
  const late = takeFromLost(record(1), two);
  await assert.rejects(late, { code: 'CONFLICT', message: /is on node3\.example\.com now/ });
  assert.equal((await two.instances.findByUuid(record(1).uuid))?.primaryNode, THREE);
});

test('nothing is taken from a node that renews its lease between the last look and the commit', async () => {
  const two = await taker(TWO, async () => {
    const value = { schema: 1, ttlMs: TTL_MS, renewals: 8, taken: [] };
    await store.commit([{ collection: NODE_LEASES, id: LOST, expected: 'any', value }]);
  });
  await assert.rejects(takeFromLost(record(1), two), { code: 'INSTANCE_STATE' });
  assert.equal((await two.instances.findByUuid(record(1).uuid))?.primaryNode, LOST);
});
