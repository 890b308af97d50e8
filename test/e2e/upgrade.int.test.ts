import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { instanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { findViolations } from '../chaos/find-violations.ts';
import { ask, assertRefused, infoOf, jobsOf, statusOf } from './support/ask-nodes.ts';

/** What an earlier release had written when it was killed; fixtures/upgrade/README.md tells how. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/upgrade/store.sqlite');

async function takeOver(lab: Lab): Promise<void> {
  await mkdir(dirname(lab.paths.storeFile), { recursive: true, mode: 0o755 });
  await copyFile(FIXTURE, lab.paths.storeFile);
}

test('a store of an earlier release is taken over, with its jobs and what was interrupted', async (t) => {
  const lab = await createLab('gnt-up');
  t.after(() => lab.dispose());
  await takeOver(lab);
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
});

test('a store of a later release is refused by name, and left as it is', async (t) => {
  const lab = await createLab('gnt-dn');
  t.after(() => lab.dispose());
  await takeOver(lab);
  const store = new DatabaseSync(lab.paths.storeFile);
  store.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 99');
  store.close();
  const before = await readFile(lab.paths.storeFile);
  const started = await lab.run('gnt-noded', [], { timeoutMs: 60_000 });
  assertRefused(started, 2, 'STORE_VERSION', /schema version 99/);
  assert.deepEqual(await readFile(lab.paths.storeFile), before);
  assert.deepEqual(await lab.findLeftovers(), []);
});
