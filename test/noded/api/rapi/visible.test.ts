import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobRecord } from '#shared/contract/job.ts';
import type { IndexedInstance } from '../../../../noded/records/instance-index.ts';
import { createVisible } from '../../../../noded/api/rapi/visible.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 100 * HOUR_MS;

async function seen(
  instance: Partial<IndexedInstance>,
  jobs: readonly Partial<JobRecord>[],
): Promise<readonly number[]> {
  const visible = createVisible({
    // The function reads no other fields.
    index: { list: () => Promise.resolve([{ name: 'web', tags: ['mine'], ...instance }] as never) },
    jobs: { list: () => Promise.resolve(jobs as never), get: () => assert.fail() },
    overview: { instanceSlices: assert.fail, instance: assert.fail, orphans: assert.fail },
  });
  const user = { name: 'bob', scope: { tags: ['mine'], names: [] } };
  return (await visible.jobs(user as never)).map(({ id }) => id);
}

test('jobs of a former holder of a name are not seen, whatever the clocks of the nodes say', async () => {
  const jobs = [
    { id: 4, instance: 'web', receivedAtMs: NOW_MS },
    { id: 5, instance: 'web', receivedAtMs: NOW_MS - 5 * HOUR_MS },
    { id: 6, instance: 'other', receivedAtMs: NOW_MS },
  ];
  // The node that named it has a clock hours behind, and so has the node of job 5.
  const behind = { namedAfterJob: 4, createdAtMs: NOW_MS - 3 * HOUR_MS };
  assert.deepEqual(await seen(behind, jobs), [5]);
  assert.deepEqual(await seen({ createdAtMs: NOW_MS - HOUR_MS }, jobs), [4], 'an older record');
});
