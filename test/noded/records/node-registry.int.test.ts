import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createNodeRegistry } from '../../../noded/records/node-registry.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';

const isRefusal =
  (hint: string) =>
  (error: unknown): boolean =>
    isAppError(error, 'CONFLICT') && (error.hint ?? '').includes(hint);

test('a name is one node and a node is one name, until it is removed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-nodes-'));
  const store = createSqliteStore({ path: join(directory, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  const nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  await nodes.register('node1', 'key1');
  await nodes.register('node1', 'key1');
  await nodes.register('node2', 'key2');
  await assert.rejects(nodes.register('node2', 'key3'), isRefusal('gnt-node remove node2'));
  await assert.rejects(nodes.register('node3', 'key1'), isRefusal('--node node1'));
  assert.deepEqual(await nodes.names(), ['node1', 'node2']);
  assert.equal(await nodes.publicKeyOf('node2'), 'key2');
  await nodes.remove('node2', 7);
  assert.equal(await nodes.publicKeyOf('node2'), undefined);
  await nodes.register('node2', 'key3');
  assert.equal(await nodes.removedAtMs('key2'), 7);
  assert.equal(await nodes.removedAtMs('key3'), null);
});

test('a node that is removed while it registers stays removed, and only the node that was found is', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-nodes-'));
  const store = createSqliteStore({ path: join(directory, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  const problems = createRecordProblems(silentLogger);
  const nodes = createNodeRegistry(store, problems);
  /** Creates a registry that calls `between` once between its read and its write. */
  const after = (between: () => Promise<void>): ReturnType<typeof createNodeRegistry> => {
    let isDone = false;
    const commit: typeof store.commit = async (writes) => {
      if (!isDone) {
        isDone = true;
        await between();
      }
      return store.commit(writes);
    };
    return createNodeRegistry({ ...store, commit }, problems);
  };
  await nodes.register('node1', 'key1');
  const late = after(() => nodes.remove('node1', 7)).register('node1', 'key1');
  await assert.rejects(late, { code: 'NODE_REMOVED' });
  assert.deepEqual(await nodes.names(), []);
  await nodes.register('node2', 'key2');
  await after(async () => {
    await nodes.remove('node2', 8);
    await nodes.register('node2', 'key3');
  }).remove('node2', 9);
  assert.equal(await nodes.publicKeyOf('node2'), 'key3');
  assert.equal(await nodes.removedAtMs('key3'), null);
});

test('what is said of a node stays through its restarts, and goes with it', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-nodes-'));
  const store = createSqliteStore({ path: join(directory, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  const nodes = createNodeRegistry(store, createRecordProblems(silentLogger));
  await nodes.registerAlone('node1');
  await nodes.register('node2', 'key2');
  for (const name of ['node1', 'node2']) {
    assert.deepEqual(await nodes.flagsOf(name), { drained: false, offline: false });
    await Promise.all([
      nodes.changeFlags(name, { drained: true }),
      nodes.changeFlags(name, { offline: false }),
    ]);
  }
  await nodes.registerAlone('node1');
  await nodes.register('node2', 'key2');
  const drained = { drained: true, offline: false };
  assert.deepEqual(await nodes.list(), [
    { name: 'node1', flags: drained },
    { name: 'node2', flags: drained },
  ]);
  assert.equal(await nodes.publicKeyOf('node2'), 'key2');
  await nodes.remove('node2', 7);
  await nodes.register('node2', 'key3');
  assert.deepEqual(await nodes.flagsOf('node2'), { drained: false, offline: false });
  await assert.rejects(nodes.changeFlags('node9', { drained: true }), /'node9'/);
  const bad = { collection: 'nodes', id: 'node1', expected: 'any', value: { name: 7 } } as const;
  await store.commit([bad]);
  await nodes.registerAlone('node1');
  assert.deepEqual(await nodes.names(), ['node1', 'node2']);
});
