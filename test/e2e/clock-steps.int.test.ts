import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { findViolations } from '../chaos/find-violations.ts';
import { infoOf, submit } from './support/ask-nodes.ts';
import { type GatedJobs, gateJobs } from './support/gated-jobs.ts';

/** A real daemon whose clock is set hours forward and back during its work. */
let lab: Lab;
let jobs: GatedJobs;
const HOUR_MS = 3_600_000;
/** Longer than the cluster's timeout of installations. */
const STEP_HOURS = 6;
const setClock = (hours: number): Promise<void> =>
  writeFile(process.env['GNT_TEST_CLOCK'] ?? '', String(hours * HOUR_MS));

before(async () => {
  const preload = join(import.meta.dirname, '../lab/step-clock.ts');
  process.env['NODE_OPTIONS'] = `--import ${preload}`;
  process.env['GNT_TEST_CLOCK'] = join('/tmp', `gnt-test-clock-${process.pid}`);
  await setClock(0);
  lab = await createLab('gnt-cs');
  delete process.env['NODE_OPTIONS'];
  await lab.startNode();
  jobs = await gateJobs(lab);
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await rm(process.env['GNT_TEST_CLOCK'] ?? '', { force: true });
  assert.deepEqual(leftovers, []);
});

async function restart(): Promise<void> {
  await killNode(lab);
  await lab.startNode();
}

for (const hours of [STEP_HOURS, -2 * STEP_HOURS]) {
  test(`a step of ${hours} hours ends no installation, and what comes then is done`, async () => {
    const name = `at${hours + 100}.example.com`;
    const id = await jobs.begin(name);
    await setClock(hours);
    const tagging = { opcode: 'INSTANCE_SET_PARAMS', name: 'other.example.com', tags: ['one'] };
    const other = jobs.createOf('other.example.com', { install: false });
    assert.equal((await submit(lab, other)).status, 'success');
    const { modifiedAtMs } = await infoOf(lab, 'other.example.com');
    assert.ok(Math.abs(modifiedAtMs - Date.now() - hours * HOUR_MS) < HOUR_MS, 'its clock was set');
    assert.equal((await submit(lab, tagging)).status, 'success');
    await jobs.open(name);
    assert.equal((await jobs.ended(id)).error, null);
    assert.equal((await infoOf(lab, name)).installState, 'installed');
    await restart();
    assert.deepEqual((await infoOf(lab, 'other.example.com')).tags, ['one']);
    const remove = { opcode: 'INSTANCE_REMOVE', name: 'other.example.com' };
    assert.equal((await submit(lab, remove)).status, 'success');
    assert.deepEqual(await findViolations(lab.paths), []);
  });
}
