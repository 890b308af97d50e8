import assert from 'node:assert/strict';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { TestContext } from 'node:test';
import { instanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { findViolations } from '../../chaos/find-violations.ts';
import { ask, infoOf, jobsOf, statusOf } from './ask-nodes.ts';

/** Copies a store to the path of a node's store. */
export async function bring(lab: Lab, storeFile: string): Promise<void> {
  await mkdir(dirname(lab.paths.storeFile), { recursive: true, mode: 0o755 });
  await copyFile(storeFile, lab.paths.storeFile);
}

/**
 * Checks that the present release shows, changes and removes everything in the store that `npm run
 * package` keeps of a release.
 */
export async function assertTakenOver(t: TestContext, storeFile: string): Promise<void> {
  const lab = await createLab('gnt-up');
  t.after(() => lab.dispose());
  await bring(lab, storeFile);
  await lab.startNode();
  const names = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
  assert.deepEqual(names, ['web1.example.com', 'web3.example.com']);
  const { tags, installState, osParameters } = await infoOf(lab, 'web1.example.com');
  assert.deepEqual([tags, installState], [['old'], 'installed']);
  assert.match(JSON.stringify(osParameters), /somebody/);
  assert.equal((await infoOf(lab, 'web3.example.com')).install?.error?.code, 'JOB_INTERRUPTED');
  const jobs = await jobsOf(lab);
  assert.deepEqual(jobs.map(({ status }) => status).filter((status) => status !== 'success'), ['error']); // prettier-ignore
  assert.ok(jobs.length >= 7);
  const change = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1.example.com', tags: ['new'] };
  assert.equal(await statusOf(lab, change), 'success');
  for (const name of names)
    assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name }), 'success');
  assert.deepEqual(await findViolations(lab.paths), []);
  await lab.stopNode();
  assert.deepEqual(await lab.findLeftovers(), []);
}
