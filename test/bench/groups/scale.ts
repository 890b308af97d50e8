import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import { INSTANCES } from '../../../noded/records/instance-repository.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { startRedis } from '../../noded/support/redis-server.ts';
import { benchRecord } from '../support/cluster-records.ts';
import type { Report } from '../support/measurement.ts';
import { watchServer, type ServerWatch } from '../support/server-work.ts';

/** More than a cluster can have: its channel has 65,023 addresses. */
const INSTANCES_COUNT = 100_000;
const NODES_COUNT = 1000;
const nodeOf = (index: number): string => `node${index % NODES_COUNT}.example.com`;
const AT_ONCE = 500;
/** Size of an empty frame: kind, stream, counter, seal and one byte. */
const HEARTBEAT_BYTES = 42;
/** Each end of a stream sends heartbeats (noded/cluster/peers/peer-link.ts). */
const HEARTBEAT_S = 5;
const HEARTBEATS = 200_000;
const CHANGES = 10;
const CONNECTIONS_AT_ONCE = 50;

/**
 * Finds the bottleneck of a cluster with 1,000 nodes and 100,000 instances. The records and one
 * node's index are real. Other nodes are simulated by their connections and commands. The server's
 * cost is CPU time, which does not depend on the load of the host.
 */
export async function measure(report: Report): Promise<void> {
  const redis = await startRedis();
  const add = (name: string, value: number, unit: string): void =>
    report({ name, value, unit, compared_with: null });
  const key = makeClusterKey();
  const { store } = await openSealedRedis(`unix:${redis.socket}`, () => ringOf(key), silentLogger);
  try {
    await using server = watchServer(redis.socket);
    await fill(store);
    await measureIndex(store, add);
    await measureHeartbeats(redis.socket, server, add);
    await measureChanges(redis.socket, server, store, add);
  } finally {
    await store.close();
    await redis.stop();
  }
}

type Add = (name: string, value: number, unit: string) => void;

async function fill(store: Store): Promise<void> {
  for (let begin = 0; begin < INSTANCES_COUNT; begin += AT_ONCE) {
    const records = Array.from({ length: AT_ONCE }, (_, offset) =>
      benchRecord(begin + offset, nodeOf(begin + offset)),
    );
    await store.commit(
      records.map((value) => ({
        ...{ collection: INSTANCES, id: value.uuid, expected: 'absent' as const, value },
      })),
    );
  }
}

/** Measures one node's index of all instances. */
async function measureIndex(store: Store, add: Add): Promise<void> {
  const before = usedBytes();
  const problems = createRecordProblems(silentLogger);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const begunAt = performance.now();
  await using index = startInstanceIndex({ store, problems, logger: silentLogger });
  const { length } = await index.list();
  add(`${length} records read at a start`, performance.now() - begunAt, 'ms');
  add('longest turn meanwhile, p99', delays.percentile(99) / 1e6, 'ms');
  add('memory of each', (usedBytes() - before) / length / 1024, 'KiB');
  const [first] = await index.list();
  const times: number[] = [];
  for (let round = 0; round < CHANGES; round += 1) {
    const stored = await store.get(INSTANCES, first?.uuid ?? '');
    if (stored !== undefined)
      await store.commit([{ ...stored, collection: INSTANCES, expected: stored.revision }]);
    const askedAt = performance.now();
    await index.list();
    times.push(performance.now() - askedAt);
  }
  add('a list after a change, longest', Math.max(...times), 'ms');
}

/**
 * Measures heartbeats: each node has a stream to each other node, and both ends send them every few
 * seconds.
 */
async function measureHeartbeats(socket: string, server: ServerWatch, add: Add): Promise<void> {
  const nodes = await connectAll(socket);
  const channels = nodes.map((_, index) => `{gnt}:node:${nodeOf(index)}`);
  await Promise.all(nodes.map((node, index) => node.subscribe(channels[index] ?? '')));
  const frame = Buffer.alloc(HEARTBEAT_BYTES, 7);
  const { cpuMs } = await server.during(async () => {
    for (let sent = 0; sent < HEARTBEATS; sent += NODES_COUNT)
      await Promise.all(channels.map((channel) => server.redis.publish(channel, frame)));
  });
  const each = cpuMs / HEARTBEATS;
  add('a heartbeat, processor of Redis', 1000 * each, 'µs');
  const perSecond = (count: number): number => (2 * count * (count - 1)) / HEARTBEAT_S;
  for (const count of [100, 250, NODES_COUNT])
    add(`heartbeats of ${count} nodes`, (each * perSecond(count)) / 10, '% of a core');
  for (const node of nodes) node.disconnect();
}

/** Measures changes: each node waits for them, and reads the changed records. */
async function measureChanges(
  socket: string,
  server: ServerWatch,
  store: Store,
  add: Add,
): Promise<void> {
  const nodes = await connectAll(socket);
  const ids = await store.ids(INSTANCES);
  const log = `{gnt}:l:${INSTANCES}`;
  const follow = async (node: Redis): Promise<void> => {
    for (let seen = 0, last = '$'; seen < CHANGES;) {
      const told = await node.xread('COUNT', 1000, 'BLOCK', 10_000, 'STREAMS', log, last);
      for (const [at, [, id = '']] of told?.[0]?.[1] ?? []) {
        await node.hget(`{gnt}:c:${INSTANCES}`, id);
        last = at;
        seen += 1;
      }
    }
  };
  const { cpuMs } = await server.during(async () => {
    const following = nodes.map(follow);
    // The echoes return after all nodes wait.
    await Promise.all(nodes.map((node) => node.echo('here').catch(() => undefined)));
    for (const id of ids.slice(0, CHANGES)) {
      const { revision, value } = (await store.get(INSTANCES, id)) ?? { revision: 0, value: null };
      await store.commit([{ collection: INSTANCES, id, expected: revision, value }]);
    }
    await Promise.all(following);
  });
  add(`a change told to ${NODES_COUNT} nodes, processor of Redis`, cpuMs / CHANGES, 'ms');
  for (const node of nodes) node.disconnect();
}

async function connectAll(socket: string): Promise<readonly Redis[]> {
  const nodes = Array.from({ length: NODES_COUNT }, () => new Redis(socket, { lazyConnect: true }));
  // The server's backlog refuses more at once.
  for (let at = 0; at < nodes.length; at += CONNECTIONS_AT_ONCE)
    await Promise.all(nodes.slice(at, at + CONNECTIONS_AT_ONCE).map((node) => node.connect()));
  return nodes;
}

function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  // Only a new context has the exposed `gc`.
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
