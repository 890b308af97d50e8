import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { NOW_MS, sampleJob } from '../../lab/sample-job.ts';
import { ManualClock } from '../support/manual-clock.ts';

const example = sampleJob({ status: 'success', endedAtMs: NOW_MS });

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
