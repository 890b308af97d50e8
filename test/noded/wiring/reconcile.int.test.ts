import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { beginInstall } from '../../../noded/records/install-states.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createJobEngine } from '../../../noded/jobs/job-engine.ts';
import type { JobHandlers } from '../../../noded/jobs/job-handler.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { reconcile, startReconciler } from '../../../noded/wiring/reconcile.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { createGate, shutdown } from '../jobs/job-engine-lab.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createOpcode } from '../support/opcodes.ts';
import { createTestOutcomes } from '../support/test-outcomes.ts';

test('what the store has of refused work is ended; what is worked on, and what is not ours, stays', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-reconcile-'));
  const clock = new ManualClock(50_000);
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  let isAnswerLost = false;
  const lossy: typeof store = {
    ...store,
    commit: async (writes) => {
      const revisions = await store.commit(writes);
      if (isAnswerLost) throw new AppError('STORE_UNAVAILABLE', 'the store does not answer');
      return revisions;
    },
  };
  const problems = createRecordProblems(silentLogger);
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  t.after(() => index[Symbol.asyncDispose]());
  const jobs = createJobRepository(lossy, createRecordProblems(silentLogger));
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const gate = createGate();
  const handler = { prepare: async () => gate.pass };
  const engine = createJobEngine({
    ...{ nodeName: 'node1', repository: jobs, logger: silentLogger, clock },
    authorize: async () => undefined,
    listHiddenValues: async () => [],
    outcomes: createTestOutcomes(join(dir, 'outcomes'), jobs, instances),
    locksOf: () => [],
    handlers: { INSTANCE_SHUTDOWN: handler } as unknown as JobHandlers,
  });
  const mine = await engine.submit(shutdown());
  await gate.entered;
  isAnswerLost = true;
  await assert.rejects(engine.submit(shutdown()), { code: 'STORE_UNAVAILABLE' });
  isAnswerLost = false;
  const [, refused] = await jobs.list();
  assert.equal(refused?.status, 'queued', 'it is there all the same');
  const theirs = await jobs.enter((id) => ({ ...refused, id, node: 'node2' }));

  const install = async (name: string, jobId: number, nodeName = 'node1'): Promise<string> => {
    const drawn = { nodeName, newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' };
    const planned = planNewInstance(createOpcode({ name }), drawn);
    return (await instances.create({ ...planned, nics: [], ...beginInstall(jobId, 1) })).uuid;
  };
  const [ghost, worked, elsewhere] = [
    await install('ghost.example.com', refused.id),
    await install('worked.example.com', mine),
    await install('elsewhere.example.com', theirs.id, 'node2'),
  ];

  const owns = (node: string | undefined): boolean => node === 'node1';
  const records = { jobs, instances, index, owns, lastAwayAtMs: () => null };
  await reconcile({ records, engine, clock, logger: silentLogger });
  const statuses = (await jobs.list()).map(({ status, error }) => error?.code ?? status);
  assert.deepEqual(statuses, ['running', 'JOB_INTERRUPTED', 'queued']);
  const stateOf = async (uuid: string): Promise<unknown> =>
    (await instances.findByUuid(uuid))?.installState;
  assert.deepEqual(await Promise.all([ghost, worked, elsewhere].map(stateOf)), [
    ...['failed', 'installing', 'installing'],
  ]);
  gate.open();
  await engine.stop();
  assert.equal((await jobs.load(mine))?.status, 'success');
});

test('a store whose jobs cannot be told keeps no departure from its end', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = new ManualClock(50_000);
  const unreadable = (): never => {
    throw new Error('cannot be told');
  };
  let settled = 0;
  const records = { jobs: { list: unreadable }, lastAwayAtMs: () => clock.monotonicMs() };
  using reconciler = startReconciler({
    ...{ records: records as never, engine: { has: () => false }, clock, logger: silentLogger },
    others: [() => Promise.resolve(void (settled += 1))],
    often: () => Promise.resolve(),
  });
  void reconciler;
  t.mock.timers.tick(10_000);
  assert.equal(settled, 1);
});
