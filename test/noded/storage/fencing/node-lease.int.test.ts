import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLogger } from '#shared/log/log.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import { parseStoreUrl, type RedisServer } from '#shared/store/store-url.ts';
import { createForeignLeases } from '../../../../noded/storage/fencing/foreign-leases.ts';
import {
  NODE_LEASES,
  startOwnLease,
  type OwnLease,
} from '../../../../noded/storage/fencing/node-lease.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NODE = 'node1.example.com';
const UUID = '00000000-0000-4000-8000-000000000001';
const TTL_MS = 60_000;
let dir = '';
let store: Store;
const events: string[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-lease-'));
  store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  events.length = 0;
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const file = (): string => join(dir, 'lease');
const start = (
  changes: {
    readonly ttlMs?: number;
    readonly replicas?: number;
    readonly giveUp?: (uuid: string) => Promise<void>;
  } = {},
): Promise<OwnLease> =>
  startOwnLease({
    ...{ store, nodeName: NODE, file: file(), ttlMs: TTL_MS, logger: silentLogger },
    replicas: undefined,
    isNeeded: () => Promise.resolve(true),
    giveUp: async (uuid) => void events.push(uuid),
    ...changes,
  });

/** Takes an instance as another node does after the end of the lease. */
async function take(uuid = UUID): Promise<void> {
  const clock = new ManualClock();
  const leases = createForeignLeases({ store, ttlMs: TTL_MS, server: null, clock });
  await assert.rejects(leases.planTaking(NODE, uuid), { code: 'INSTANCE_STATE' });
  clock.advance(TTL_MS);
  await store.commit([await leases.planTaking(NODE, uuid)]);
}

const renewals = async (): Promise<unknown> => (await store.get(NODE_LEASES, NODE))?.value;

test('a lease is written for the parents of machines once the store has it', async () => {
  await using lease = await start();
  const [boot = '', pause, end] = (await readFile(file(), 'utf8')).trim().split(' ');
  assert.match(boot, /^[0-9a-f-]{36}$/);
  assert.equal(Number(end) - Number(pause), 80);
  assert.ok((lease.leftS() ?? 0) > 38);
});

test('what was taken is given up before the lease is renewed, and only then', async () => {
  await (await start())[Symbol.asyncDispose]();
  const before = await readFile(file(), 'utf8');
  await take();
  const giveUp = async (uuid: string): Promise<void> => {
    events.push(uuid);
    assert.equal(await readFile(file(), 'utf8'), before);
    assert.deepEqual(await renewals(), { schema: 1, ttlMs: TTL_MS, renewals: 1, taken: [UUID] });
  };
  await using lease = await start({ giveUp });
  void lease;
  assert.deepEqual(events, [UUID]);
  assert.deepEqual(await renewals(), { schema: 1, ttlMs: TTL_MS, renewals: 2, taken: [] });
});

test('while what was taken cannot be given up, nothing is renewed', async () => {
  await (await start())[Symbol.asyncDispose]();
  await take();
  const giveUp = (): Promise<void> => Promise.reject(new Error('it does not end'));
  await using lease = await start({ giveUp });
  assert.equal(lease.leftS(), null);
  await assert.rejects(lease.enter(UUID), /does not end/);
  assert.deepEqual(await renewals(), { schema: 1, ttlMs: TTL_MS, renewals: 1, taken: [UUID] });
});

test('a start that is under way is told that its instance was taken, and waited for', async () => {
  await using lease = await start({ ttlMs: 1200 });
  const entry = await lease.enter(UUID);
  const other = await lease.enter('00000000-0000-4000-8000-000000000002');
  const stored = await store.get(NODE_LEASES, NODE);
  const value = { ...(stored?.value as object), taken: [UUID] };
  await store.commit([{ collection: NODE_LEASES, id: NODE, expected: 'any', value }]);
  await once(entry.signal, 'abort', { signal: AbortSignal.timeout(10_000) });
  assert.deepEqual(events, []);
  entry[Symbol.dispose]();
  while (events.length === 0) await sleep(10);
  assert.deepEqual(events, [UUID]);
  assert.equal(other.signal.aborted, false);
  other[Symbol.dispose]();
});

test('who took an instance of a node that renewed its lease meanwhile fails', async () => {
  await using lease = await start();
  const clock = new ManualClock();
  const leases = createForeignLeases({ store, ttlMs: TTL_MS, server: null, clock });
  await assert.rejects(leases.planTaking(NODE, UUID), { code: 'INSTANCE_STATE' });
  clock.advance(TTL_MS);
  const write = await leases.planTaking(NODE, UUID);
  await lease[Symbol.asyncDispose]();
  await (await start())[Symbol.asyncDispose]();
  await assert.rejects(store.commit([write]), StoreConflict);
  await assert.rejects(leases.planTaking(NODE, UUID), { code: 'INSTANCE_STATE' });
});

test('others go by a longer lease until machines here go by the shorter one', async () => {
  await (await start({ ttlMs: 300_000 }))[Symbol.asyncDispose]();
  await (await start())[Symbol.asyncDispose]();
  assert.deepEqual(await renewals(), { schema: 1, ttlMs: 300_000, renewals: 2, taken: [] });
});

test('below Sentinels the end of a lease is seen only where both nodes wait for replicas', async () => {
  const seenBy = (server: RedisServer): Promise<void> =>
    createForeignLeases({ store, ttlMs: TTL_MS, server, clock: new ManualClock() }).requireSeen(
      NODE,
    );
  const [alone, waiting] = ['sentinel://one/gnt', 'sentinel://one/gnt?replicas=1'].map(
    parseStoreUrl,
  );
  assert.ok(alone && waiting);
  // A node that never renewed may have used a master that was cut off.
  await assert.rejects(seenBy(waiting), { code: 'HOST_PREREQUISITE' });
  await (await start())[Symbol.asyncDispose]();
  await assert.rejects(seenBy(waiting), { code: 'HOST_PREREQUISITE' });
  await (await start({ replicas: 1 }))[Symbol.asyncDispose]();
  await seenBy(waiting);
  await assert.rejects(seenBy(alone), { code: 'HOST_PREREQUISITE' });
  await (await start())[Symbol.asyncDispose]();
  await assert.rejects(seenBy(waiting), { code: 'HOST_PREREQUISITE' });
  await seenBy(parseStoreUrl('redis://one'));
});
