import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { STORE_SCHEMA } from '#shared/store/encode.ts';
import { createLab, type Lab, type LabProcess } from '../../scripts/demo/lab.ts';
import { writeStore } from '../package/keep-release.ts';
import { killNode } from '../lab/kill-node.ts';
import { assertTakenOver } from './support/take-over.ts';
import { findReleases } from '../lab/kept-releases.ts';
import { earlierRelease } from '../lab/earlier-release.ts';
import { assertRefused, infoOf, jobsOf, succeed } from './support/ask-nodes.ts';

const PRESENT = join(import.meta.dirname, '../../node_modules/.bin');
const NAME = 'web1.example.com';

const daemonsOf = async (lab: Lab, name: 'noded' | 'metad'): Promise<readonly LabProcess[]> =>
  (await lab.processes()).filter(({ command }) => command.includes(`/${name}/main.`));

for (const { name: version, commit } of findReleases())
  test(`what an earlier release runs is taken over: machine, metad, values, jobs (${version})`, (t) =>
    takeOverRunning(t, commit));

async function takeOverRunning(t: TestContext, commit: string): Promise<void> {
  const earlier = await earlierRelease(commit);
  if (earlier === undefined) return t.skip('this checkout has no history');
  let programs = earlier;
  const lab = await createLab('gnt-ur', () => programs);
  t.after(() => lab.dispose());
  await lab.startNode();
  const image = join(lab.paths.root, 'empty.raw');
  await writeFile(image, '');
  await truncate(image, 1024 * 1024);
  await succeed(
    ...[lab, 'gnt-instance', 'add', '--no-install', '--os-image', image, '--no-nics'] as const,
    ...['-B', 'memory=32', '-s', '1M', '-C', 'yes', NAME],
  ); // prettier-ignore
  await succeed(lab, 'gnt-instance', 'startup', NAME);
  const before = await infoOf(lab, NAME);
  const jobs = await jobsOf(lab);
  const [metad] = await daemonsOf(lab, 'metad');
  for (const { command } of await daemonsOf(lab, 'noded')) assert.match(command, /\/release-/);
  await killNode(lab);

  programs = PRESENT;
  await lab.startNode();
  const after = await infoOf(lab, NAME);
  assert.equal(after.running?.pid, before.running?.pid);
  assert.deepEqual([after.status, after.channel], ['running', before.channel]);
  assert.deepEqual((await jobsOf(lab)).map(({ id, status }) => [id, status]), jobs.map(({ id, status }) => [id, status])); // prettier-ignore
  for (const { command } of await daemonsOf(lab, 'noded')) assert.doesNotMatch(command, /release-/);
  // Only metad has the guest's secrets and its waiting messages.
  assert.deepEqual(await daemonsOf(lab, 'metad'), [metad]);
  const told = await lab.run('gnt-instance', [
    ...['metadata', NAME, '/ganeti/latest/meta_data.json'],
  ]);
  assert.match(told.stdout, new RegExp(before.uuid));
  // The present release also controls that QEMU process.
  await succeed(lab, 'gnt-instance', 'shutdown', '--timeout=0', NAME);
  assert.equal((await infoOf(lab, NAME)).running, null);
  await succeed(lab, 'gnt-instance', 'startup', NAME);
  await succeed(lab, 'gnt-instance', 'remove', '--force', '--shutdown-timeout=0', NAME);
  assert.equal(await lab.stopNode(), 0);
  assert.deepEqual(await lab.findLeftovers(), []);
}

test('what a package keeps of the present release is what the next one is going to take over', async (t) => {
  const folder = await mkdtemp('/tmp/gnt-kept-');
  t.after(() => rm(folder, { recursive: true }));
  const store = join(folder, 'store.sqlite');
  await writeStore(store);
  await assertTakenOver(t, store);
});

test('an earlier release refuses by name what the present one has written, and changes nothing', async (t) => {
  const [first] = findReleases();
  const earlier = await earlierRelease(first?.commit ?? '');
  if (earlier === undefined) return t.skip('this checkout has no history');
  let programs = PRESENT;
  const lab = await createLab('gnt-ud', () => programs);
  t.after(() => lab.dispose());
  await lab.startNode();
  // The earlier release does not know profiles, and would drop them with its first change.
  await succeed(lab, 'gnt-profile', 'modify', '-O', 'proxy=none', 'web');
  assert.equal(await lab.stopNode(), 0);
  const before = await readFile(lab.paths.storeFile);
  programs = earlier;
  const started = await lab.run('gnt-noded', ['--node', 'node1.example.com']);
  assertRefused(started, 2, 'STORE_VERSION', new RegExp(`schema version ${STORE_SCHEMA}`));
  assert.deepEqual(await readFile(lab.paths.storeFile), before);
  programs = PRESENT;
  await lab.startNode();
  assert.match(await succeed(lab, 'gnt-profile', 'list'), /web/);
  assert.equal(await lab.stopNode(), 0);
  assert.deepEqual(await lab.findLeftovers(), []);
});
