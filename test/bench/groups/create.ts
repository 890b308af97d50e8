import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../../../noded/records/instance-repository.ts';
import { startRedis } from '../../noded/support/redis-server.ts';
import { addRecords, newBenchInstance } from '../support/cluster-records.ts';
import { median, type Report } from '../support/measurement.ts';

/** The last counts exceed the addresses of a cluster's channel. */
const COUNTS = [100, 1000, 10_000, 20_000, 60_000, 100_000];
const NODES = ['node1.example.com', 'node2.example.com', 'node3.example.com'];
const ROUNDS = 51;
const ROUNDS_BEHIND = 5;
/** Beyond this address, other instances have all addresses. */
const LAST_ADDRESS = '169.254.254.255';

/**
 * Measures the creation of an instance in a store with many: SQLite, and a sealed Redis that syncs
 * each commit.
 */
export async function measure(report: Report): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-bench-create-'));
  const redis = await startRedis({ appendOnly: true });
  const ring = ringOf(makeClusterKey());
  const { store: sealed } = await openSealedRedis(`unix:${redis.socket}`, () => ring, silentLogger);
  const embedded = createSqliteStore({ path: join(directory, 'store.db'), clock: systemClock });
  const stores = { 'sealed Redis': sealed, SQLite: embedded };
  try {
    for (const [index, to] of COUNTS.entries()) {
      const range = { from: COUNTS[index - 1] ?? 0, to };
      for (const [name, store] of Object.entries(stores)) {
        await addRecords(store, NODES, range);
        await measureCreate(`${name}, ${to}`, store, report);
      }
    }
  } finally {
    await Promise.all(Object.values(stores).map((store) => store.close()));
    await redis.stop();
    await rm(directory, { recursive: true });
  }
}

async function measureCreate(of: string, store: Store, report: Report): Promise<void> {
  const instances = createInstanceRepository(
    store,
    systemClock,
    createRecordProblems(silentLogger),
  );
  const add = (name: string, value: number): void =>
    report({ name: `${of}: ${name}`, value, unit: 'ms', compared_with: null });
  const behind: number[] = [];
  for (let round = 0; round < ROUNDS_BEHIND; round += 1) {
    const counter = { collection: 'counters', id: 'last-channel-ip', value: LAST_ADDRESS };
    await store.commit([{ ...counter, expected: 'any' }]);
    behind.push(await timeCreate(instances));
  }
  const times: number[] = [];
  while (times.length < ROUNDS) times.push(await timeCreate(instances));
  add('create, p50', median(times));
  add('the longest of them', Math.max(...times));
  add('create behind taken addresses, p50', median(behind));
}

let created = 0;

/** Measures one creation, and removes the instance again. */
async function timeCreate(instances: InstanceRepository): Promise<number> {
  const fresh = newBenchInstance(`created${(created += 1)}.example.com`, NODES[0] ?? '');
  const drawnMacs = new Set(fresh.nics.map(({ mac }) => mac));
  const begunAt = performance.now();
  const { uuid } = await instances.create(fresh, { drawnMacs });
  const tookMs = performance.now() - begunAt;
  await instances.remove(uuid);
  return tookMs;
}
