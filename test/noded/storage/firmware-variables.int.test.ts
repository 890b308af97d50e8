import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { instanceRecord } from '../support/records.ts';

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-variables-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const disks = createInstanceDisks(dir);
  const old = { ...instanceRecord(), installState: 'installed' } as const;
  const next = { ...old, instanceId: randomUUID() };
  await disks.createEmpty(old);
  for (const each of [old, next]) await writeFile(disks.variablesPathOf(each), each.instanceId);
  return { dir, disks, old, next };
}

test('a reinstallation has EFI variables of its own, and takes those of the former system away', async (t) => {
  const { disks, old, next } = await createLab(t);
  assert.notEqual(disks.variablesPathOf(next), disks.variablesPathOf(old));
  // An installation in progress may still succeed or fail.
  assert.deepEqual(await disks.settle({ ...old, installState: 'installing' }), []);
  await disks.settle(next);
  assert.equal(await readFile(disks.variablesPathOf(next), 'utf8'), next.instanceId);
  await assert.rejects(readFile(disks.variablesPathOf(old)), { code: 'ENOENT' });
});

test('a reinstallation that failed leaves the EFI variables as they were', async (t) => {
  const { disks, old, next } = await createLab(t);
  await disks.settle(old);
  assert.equal(await readFile(disks.variablesPathOf(old), 'utf8'), old.instanceId);
  await assert.rejects(readFile(disks.variablesPathOf(next)), { code: 'ENOENT' });
});

test('what a snapshot goes back to keeps its EFI variables', async (t) => {
  const { disks, old, next } = await createLab(t);
  const { disks: parts, uuid, instanceId, installState, hostKeys } = old;
  const made = { uuid, name: 'before', takenAtMs: 1, wasRunning: false };
  const snapshot = { ...made, instanceId, installState, disks: parts, hostKeys };
  await disks.settle({ ...next, snapshots: [snapshot] });
  assert.equal(await readFile(disks.variablesPathOf(old), 'utf8'), old.instanceId);
});

test('EFI variables that were not told apart yet become those of the installation that there is', async (t) => {
  const { disks, dir, old, next } = await createLab(t);
  const undivided = join(dir, old.uuid, 'efi-variables.fd');
  await rm(disks.variablesPathOf(next));
  await rename(disks.variablesPathOf(old), undivided);
  await disks.settle({ ...old, installState: 'installing' });
  assert.equal(await readFile(undivided, 'utf8'), old.instanceId);
  await disks.settle(old);
  assert.equal(await readFile(disks.variablesPathOf(old), 'utf8'), old.instanceId);
  await assert.rejects(readFile(undivided), { code: 'ENOENT' });
  // A later installation has its own, so these are orphaned.
  await writeFile(undivided, 'of an earlier one');
  await writeFile(disks.variablesPathOf(next), next.instanceId);
  await disks.settle(next);
  assert.equal(await readFile(disks.variablesPathOf(next), 'utf8'), next.instanceId);
  await assert.rejects(readFile(undivided), { code: 'ENOENT' });
});

test('EFI variables that a killed start did not finish go, and those that are whole stay', async (t) => {
  const { disks, old, next } = await createLab(t);
  const halves = [old, next].map((each) => `${disks.variablesPathOf(each)}.half-${randomUUID()}`);
  for (const half of halves) await writeFile(half, 'ha');
  await disks.settle(next);
  for (const half of halves) await assert.rejects(readFile(half), { code: 'ENOENT' });
  assert.equal(await readFile(disks.variablesPathOf(next), 'utf8'), next.instanceId);
});
