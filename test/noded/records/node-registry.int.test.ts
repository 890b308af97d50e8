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
