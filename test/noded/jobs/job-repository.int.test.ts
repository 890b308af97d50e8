import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDryRun } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { forgetOldJobs } from '../../../noded/jobs/forget-old-jobs.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { NOW_MS, sampleJob } from '../../lab/sample-job.ts';
import { ManualClock } from '../support/manual-clock.ts';

const example = sampleJob({ status: 'success', endedAtMs: NOW_MS });

test('what ended long ago is forgotten, by the node that ran it; what runs never is', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const clock = new ManualClock();
  const store = createSqliteStore({ path: join(dir, 'store'), clock });
  t.after(() => store.close());
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const DAY_MS = 24 * 3_600_000;
  const now = NOW_MS + 100 * DAY_MS;
  const ends = { old: NOW_MS, ofAnother: NOW_MS, recent: now - DAY_MS, running: null };
  for (const [what, endedAtMs] of Object.entries(ends)) {
    const node = what === 'ofAnother' ? 'node2' : 'node1';
    await jobs.enter((id) => ({ ...example, id, node, endedAtMs, summary: what }));
  }
  const logger = silentLogger;
  const owns = (node: string | undefined): boolean => node === 'node1';
  const forgotten = Promise.withResolvers<number>();
  const watched = {
    forgetOlder: (...of: Parameters<typeof jobs.forgetOlder>) => {
      const counting = jobs.forgetOlder(...of);
      counting.then(forgotten.resolve, forgotten.reject);
      return counting;
    },
  };
  const forgetting = forgetOldJobs({ jobs: watched, owns, logger, clock: { now: () => now } });
  assert.equal(await forgotten.promise, 1);
  forgetting[Symbol.dispose]();
  const kept = (await jobs.list()).map(({ summary }) => summary);
  assert.deepEqual(kept, ['ofAnother', 'recent', 'running']);
});

test('one user of the remote API pushes nobody else out of the history', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const add = async (submitter?: string): Promise<number> => {
    const { id } = await jobs.enter((number) => ({
      ...{ ...example, id: number },
      ...(submitter !== undefined && { submitter }),
    }));
    return id;
  };
  const ofRoot = await add();
  const ofBob = await add('rapi:bob');
  const first = await add('rapi:alice');
  for (let count = 0; count < 1005; count++) await add('rapi:alice');
  const kept = await jobs.list();
  assert.equal(kept.filter(({ submitter }) => submitter === 'rapi:alice').length, 1000);
  assert.equal(await jobs.load(first), undefined, 'their own oldest goes');
  assert.equal((await jobs.load(ofBob))?.submitter, 'rapi:bob');
  assert.equal((await jobs.load(ofRoot))?.id, ofRoot);
  const ids = kept.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
});

test('checks of a user displace the oldest of them, and no job', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const add = (input: object): Promise<unknown> =>
    jobs.enter((id) => ({ ...example, id, submitter: 'rapi:alice', input: { ...input } }));
  await add({});
  for (let count = 0; count < 105; count++) await add({ isDryRun: true });
  await add({});
  const kept = await jobs.list();
  assert.equal(kept.filter(isDryRun).length, 100);
  assert.equal(kept.length, 102);
});

test('two nodes that enter jobs at once get a number each, whatever comes between two questions', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  const problems = createRecordProblems(silentLogger);
  const other = createJobRepository(store, problems);
  const enter = (jobs: typeof other): Promise<{ readonly id: number }> =>
    jobs.enter((id) => ({ ...example, id }));
  for (let question = 1; question <= 3; question += 1) {
    let asked = 0;
    const between = {
      ...store,
      get: async (collection: string, id: string) => {
        asked += 1;
        if (asked === question) await enter(other);
        return store.get(collection, id);
      },
    };
    const before = (await other.list()).length;
    await enter(createJobRepository(between, problems));
    const ids = (await other.list()).map(({ id }) => id);
    assert.equal(new Set(ids).size, before + 2);
  }
});

test('jobs that are submitted at once are a few commits, and each is refused for its own faults', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  const commits = t.mock.method(store, 'commit');
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const tooLarge = 'x'.repeat(17 * 1024 * 1024);
  const enter = (index: number): Promise<number> =>
    jobs
      .enter((id) => ({
        ...{ ...example, id, summary: `job ${index}` },
        ...(index % 3 === 0 && { submitter: 'rapi:tim' }),
        ...(index === 40 && { summary: tooLarge }),
      }))
      .then(({ id }) => id);
  const some = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => enter(index)));
  assert.deepEqual(
    some.map((one) => one.status === 'fulfilled' && one.value),
    Array.from({ length: 40 }, (_, index) => index + 1),
    'in the order in which they were submitted',
  );
  assert.ok(commits.mock.callCount() <= 3, `${commits.mock.callCount()} commits`);
  const more = await Promise.allSettled([39, 40, 41].map(enter));
  assert.deepEqual(
    more.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal((await jobs.list()).length, 42);
});

test('a store that is away refuses all that wait for it, and nothing of them is written later', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  let isAway = true;
  const wayward: typeof store = {
    ...store,
    commit: (writes) =>
      isAway ? Promise.reject(new AppError('STORE_UNAVAILABLE', 'away')) : store.commit(writes),
  };
  const jobs = createJobRepository(wayward, createRecordProblems(silentLogger));
  const enter = (): Promise<unknown> => jobs.enter((id) => ({ ...example, id }));
  const refused = await Promise.allSettled(Array.from({ length: 100 }, enter));
  assert.ok(refused.every(({ status }) => status === 'rejected'));
  isAway = false;
  await enter();
  assert.deepEqual(
    (await jobs.list()).map(({ id }) => id),
    [1],
  );
});

test('after an error of which nobody knows what it left, no job is entered a second time', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-jobs-'));
  t.after(() => rm(dir, { recursive: true }));
  const store = createSqliteStore({ path: join(dir, 'store'), clock: new ManualClock() });
  t.after(() => store.close());
  const wayward: typeof store = {
    ...store,
    commit: async (writes) => {
      await store.commit(writes);
      throw new Error('it was full after that');
    },
  };
  const jobs = createJobRepository(wayward, createRecordProblems(silentLogger));
  const enter = (): Promise<unknown> => jobs.enter((id) => ({ ...example, id }));
  const told = await Promise.allSettled(Array.from({ length: 4 }, enter));
  assert.ok(told.every(({ status }) => status === 'rejected'));
  assert.equal((await jobs.list()).length, 4);
});
