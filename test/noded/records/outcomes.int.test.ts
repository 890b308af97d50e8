import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { sampleJob } from '../../lab/sample-job.ts';
import { startRedis } from '../support/redis-server.ts';
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

test('the end of a job outlives a key of the store that another program wrote over', async (t) => {
  const server = await startRedis();
  const redis = new Redis({ path: server.socket });
  const store = await createRedisStore({
    ...{ server: { url: `unix:${server.socket}` }, logger: silentLogger },
  });
  t.after(async () => {
    await store.close();
    redis.disconnect();
    await server.stop();
  });
  const jobs = createJobRepository(store, createRecordProblems(silentLogger));
  const running = { ...sampleJob({ status: 'running', endedAtMs: null }) };
  const job = await jobs.enter((id) => ({ ...running, id }));
  await redis.rename('{gnt}:c:jobs', 'aside');
  await redis.set('{gnt}:c:jobs', 'x');
  const dir = await folderOf(t);
  await createTestOutcomes(dir, jobs, repositoryOf(store)).endJob({
    ...{ ...job, status: 'success', endedAtMs: 5 },
  });
  assert.deepEqual(await readdir(dir), [`job-${job.id}.json`]);
  await redis.rename('aside', '{gnt}:c:jobs');
  while ((await jobs.load(job.id))?.status !== 'success') await sleep(20);
});
