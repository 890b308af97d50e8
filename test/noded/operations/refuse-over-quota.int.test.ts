import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { claimOfNew } from '../../../noded/operations/claim-quota.ts';
import { createRefuseOverQuota } from '../../../noded/operations/refuse-over-quota.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { createQuotaClaims } from '../../../noded/records/quota-claims.ts';
import { ENGINES, plan, repositoryOf } from '../records/repository-lab.ts';
import { createOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';
import { sampleJob } from '../../lab/sample-job.ts';

const unfinished = sampleJob({ status: 'running', endedAtMs: null });
const alice = { user: 'alice', scope: { tags: ['a'], names: ['a-*'], quota: { instances: 2 } } };

/** Creates the parts that each node has of its own over a shared store. */
function createNode(store: Store) {
  const problems = createRecordProblems(silentLogger);
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  const instances = repositoryOf(store);
  const jobs = createJobRepository(store, problems);
  const claims = createQuotaClaims(store, jobs);
  return { index, instances, jobs, refuse: createRefuseOverQuota({ index, instances, claims }) };
}

test('the large records of a user with many instances are not in memory all at once', async () => {
  const read: number[] = [];
  const records = Array.from({ length: 100 }, (_, at) => ({
    ...instanceRecord({ name: `a-${at}` }),
    diskBytes: 0,
  }));
  const refuse = createRefuseOverQuota({
    index: { list: () => Promise.resolve(records), doubt: () => undefined },
    instances: {
      findByUuid: () => Promise.resolve(undefined),
      readSome: (uuids) => {
        read.push(uuids.length);
        const found = records.filter(({ uuid }) => uuids.includes(uuid));
        return Promise.resolve({
          readable: found.map((value) => ({ id: value.uuid, value })),
          bad: [],
        });
      },
    },
    claims: { claim: (_job, _planned, judge) => judge([]) },
  });
  const full = { ...alice, scope: { ...alice.scope, quota: { instances: 100 } } };
  const planned = claimOfNew(createOpcode({ name: 'a-new' }));
  await assert.rejects(refuse(1, planned, full), { code: 'QUOTA_EXCEEDED' });
  assert.equal(
    read.reduce((sum, count) => sum + count),
    100,
  );
  assert.ok(Math.max(...read) <= 32, `${read.join(', ')}`);
});

for (const [engine, open] of Object.entries(ENGINES)) {
  test(`${engine}: of ten jobs at once on two nodes, as many pass as the quota allows`, async (t) => {
    const store = await open(t);
    const nodes = [createNode(store), createNode(store)];
    t.after(async () => {
      for (const { index } of nodes) await index[Symbol.asyncDispose]();
    });
    const asked = await Promise.all(
      Array.from({ length: 10 }, async (_, at) => {
        const { jobs, refuse } = nodes[at % 2] ?? assert.fail();
        const job = await jobs.enter((id) => ({ ...unfinished, id }));
        const claim = claimOfNew(createOpcode({ name: `a-${at}` }));
        const refusal = await refuse(job.id, claim, alice).then(
          () => null,
          (error: unknown) => error,
        );
        return { job, jobs, at, refusal };
      }),
    );
    const passed = asked.filter(({ refusal }) => refusal === null);
    assert.equal(passed.length, 2);
    for (const { refusal } of asked)
      if (refusal !== null) assert.equal((refusal as { code?: string }).code, 'QUOTA_EXCEEDED');

    // One job made its instance and one failed: there is room for one more.
    const [node = assert.fail()] = nodes;
    await node.instances.create(plan(`a-${passed[0]?.at}`));
    for (const { jobs, job } of passed) await jobs.save({ ...job, status: 'error', endedAtMs: 5 });
    const refused = asked.filter(({ refusal }) => refusal !== null);
    const again = refused.slice(0, 2).map(({ job, at }) => {
      const claim = claimOfNew(createOpcode({ name: `a-${at}` }));
      return node.refuse(job.id, claim, alice);
    });
    const ends = await Promise.allSettled(again);
    assert.deepEqual(ends.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  });

  test(`${engine}: users with a common tag count each other's jobs`, async (t) => {
    const store = await open(t);
    const { index, jobs, refuse } = createNode(store);
    t.after(() => index[Symbol.asyncDispose]());
    const claim = (name: string) => claimOfNew(createOpcode({ name, tags: ['a'] }));
    const enter = async () => (await jobs.enter((id) => ({ ...unfinished, id }))).id;
    const quota = { instances: 1 };
    const ann = { user: 'ann', scope: { tags: ['a'], names: [], quota } };
    const bob = { user: 'bob', scope: { tags: ['a'], names: [], quota } };
    await refuse(await enter(), claim('one'), ann);
    await assert.rejects(refuse(await enter(), claim('two'), bob), { code: 'QUOTA_EXCEEDED' });
    const carl = { user: 'carl', scope: { tags: ['c'], names: [], quota } };
    await refuse(await enter(), claimOfNew(createOpcode({ name: 'x', tags: ['c'] })), carl);
  });
}
