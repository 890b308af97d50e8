import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLogger } from '#shared/log/log.ts';
import { ClusterFeed } from '../../../../noded/cluster/feed/cluster-feed.ts';
import type { ClusterChange, FeedSources } from '../../../../noded/cluster/feed/change-follower.ts';
import type { SummaryParts } from '../../../../noded/cluster/membership/overview.ts';
import type { NodeFacts } from '../../../../noded/cluster/membership/running-elsewhere.ts';

type Note = (ids: readonly string[] | null) => void;

/** A cluster of node1, this one, and node2, with instances that are only names. */
function createCluster(t: TestContext, options: { readonly lingerMs?: number } = {}) {
  const notes = new Map<string, Note>();
  let parts: readonly SummaryParts[] = [];
  let facts = new Map<string, NodeFacts>([
    ['node2', { state: 'told', running: new Map(), room: null }],
  ]);
  let failures = 0;
  let answer = Promise.resolve();
  const sources: FeedSources = {
    owns: (node) => node === 'node1',
    store: {
      watch: (collection, note) => {
        notes.set(collection, note);
        note(null);
        return { caughtUp: () => Promise.resolve(), end: () => notes.delete(collection) };
      },
    },
    summaryParts: async () => {
      await answer;
      if (failures === 0) return parts;
      failures -= 1;
      throw new Error('the store is away');
    },
    listRunning: () => [],
    facts: () => Promise.resolve(facts),
    listNodes: () =>
      Promise.resolve(
        ['node1', 'node2'].map((name) => ({ name, flags: { drained: false, offline: false } })),
      ),
    loadJobs: () => Promise.resolve([]),
    logger: silentLogger,
  };
  const feed = new ClusterFeed(sources, options);
  t.after(() => feed[Symbol.asyncDispose]());
  return {
    feed,
    notes,
    setParts: (next: readonly SummaryParts[]) => {
      parts = next;
      notes.get('instances')?.(['changed']);
    },
    setFacts: (state: 'silent') => (facts = new Map([['node2', { state }]])),
    /** Delays the answers of the store. */
    answerAfter: (given: Promise<void>) => (answer = given),
    fail: (times: number) => (failures = times),
    open: async (lastId?: string) => {
      const left = new AbortController();
      t.after(() => left.abort());
      const { isResumed, id, changes } = await feed.open(lastId, left.signal);
      const all = changes[Symbol.asyncIterator]();
      const next = async (): Promise<ClusterChange> => {
        for (;;) {
          const step = await all.next();
          assert.ok(step.done !== true, 'the feed ended');
          if (step.value !== null) return step.value.change;
        }
      };
      return { isResumed, id, next, close: () => left.abort() };
    },
  };
}

function instance(uuid: string, status: SummaryParts['status'] = 'ADMIN_down'): SummaryParts {
  // The feed compares records by identity and reads only their UUID.
  return { instance: { uuid } as SummaryParts['instance'], running: null, status };
}

test('a lost node is told', async (t) => {
  const { open, setFacts } = createCluster(t);
  const { next } = await open();
  setFacts('silent');
  const change = await next();
  assert.equal(change.event, 'nodes');
  assert.deepEqual(
    change.nodes.map(({ name, state }) => `${name} ${state}`),
    ['node1 up', 'node2 silent'],
  );
});

test('only changed instances are told', async (t) => {
  const { open, setParts } = createCluster(t);
  const same = instance('a');
  setParts([same, instance('b'), instance('c')]);
  const { next } = await open();
  setParts([same, instance('b', 'ERROR_nodedown')]);
  const change = await next();
  assert.equal(change.event, 'instances');
  assert.deepEqual(
    change.changed.map(({ now }) => now.instance.uuid),
    ['b'],
  );
  assert.deepEqual(
    change.removed.map(({ uuid }) => uuid),
    ['c'],
  );
});

test('a change during an outage of the store is told afterwards', async (t) => {
  const { open, setParts, fail } = createCluster(t);
  const { next } = await open();
  fail(2);
  setParts([instance('a')]);
  assert.equal((await next()).event, 'instances');
});

test('after an absence of the store, readers read the lists again', async (t) => {
  const { open, notes } = createCluster(t);
  const { next } = await open();
  notes.get('networks')?.(null);
  assert.equal((await next()).event, 'reset');
});

test('thousands of changes at once are a reset', async (t) => {
  const { open, setParts } = createCluster(t);
  const { next } = await open();
  setParts(Array.from({ length: 501 }, (_, index) => instance(String(index))));
  assert.equal((await next()).event, 'reset');
});

test('the feed watches nothing without readers, and a late reader starts anew', async (t) => {
  const { open, notes } = createCluster(t, { lingerMs: 20 });
  assert.equal(notes.size, 0);
  const first = await open();
  assert.notEqual(notes.size, 0);
  first.close();
  while (notes.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal((await open(first.id)).isResumed, false);
});

test('a failed start without readers ends neither the process nor the feed of later readers', async (t) => {
  const { feed, notes, open, answerAfter } = createCluster(t, { lingerMs: 0 });
  const store = Promise.withResolvers<void>();
  void answerAfter(store.promise);
  const left = new AbortController();
  const early = feed.open(undefined, left.signal);
  left.abort();
  await sleep(10);
  void answerAfter(Promise.resolve());
  const { close } = await open();
  store.reject(new Error('the store is away'));
  await assert.rejects(early, /the store is away/);
  close();
  await sleep(10);
  assert.equal(notes.size, 0, 'the later feed has ended, too');
});
