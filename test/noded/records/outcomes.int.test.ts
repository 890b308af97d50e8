import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { createTestOutcomes } from '../support/test-outcomes.ts';
import { openStore, plan, repositoryOf } from './repository-lab.ts';

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-outcomes-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test('an outcome whose record is set aside stays, and keeps no other one from being written', async (t) => {
  const store = openStore(t);
  const instances = repositoryOf(store);
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const [bad, good] = [await instances.create(plan('bad')), await instances.create(plan('good'))];
  await store.commit([
    { collection: 'instances', id: bad.uuid, expected: 'any', value: 'no record' },
  ]);
  const dir = await folderOf(t);
  const begun = { jobId: 1, beganAtMs: 1000 };
  for (const { uuid } of [bad, good])
    await writeFile(
      join(dir, `removal-${uuid}.json`),
      JSON.stringify({ kind: 'begun-removal', uuid, begun }),
    );
  await createTestOutcomes(dir, jobs, instances).resume();
  assert.equal((await instances.findByUuid(good.uuid))?.installState, 'failed');
  assert.deepEqual(await readdir(dir), [`removal-${bad.uuid}.json`]);
});
