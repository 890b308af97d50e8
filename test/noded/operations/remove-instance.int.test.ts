import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import {
  createOwnOverview,
  type OverviewSources,
} from '../../../noded/cluster/membership/overview.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { createLvm } from '../../../noded/storage/drivers/lvm/lvm.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { removeInstanceHandler } from '../../../noded/operations/remove-instance.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { Outcomes } from '../../../noded/records/outcomes.ts';
import { HERE } from '../storage/volumes/volume-suite.ts';
import { openStore, plan, repositoryOf } from '../records/repository-lab.ts';
import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';

/**
 * Creates a node with a stopped instance. Its store has no room while `isFull` is set.
 * @param canKeep whether there is room for a file of the node
 * @param vg the group of its volumes; undefined: its disks are files
 */
async function createNode(
  t: TestContext,
  { canKeep = true, vg }: { readonly canKeep?: boolean; readonly vg?: string } = {},
) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-remove-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const plain = openStore(t);
  const room = { isFull: false, onRefused: (): void => undefined };
  const store: Store = {
    ...plain,
    commit: async (writes) => {
      if (!room.isFull) return plain.commit(writes);
      room.onRefused();
      throw new AppError('DISK_FULL', 'no space left for the store to grow');
    },
  };
  const clock = new ManualClock();
  const problems = createRecordProblems(silentLogger);
  const instances = repositoryOf(store);
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const fresh = plan('web1', { disks: [{ sizeBytes: 65_536 }] });
  const volumes = { diskTemplate: 'plain', disks: fresh.disks.map((disk) => ({ ...disk, vg })) } as const; // prettier-ignore
  const planned = { ...fresh, ...(vg !== undefined && volumes), adminState: 'up' } as const;
  const web1 = await instances.create({ ...planned, installState: 'installed' });
  const files = createInstanceDisks(dir);
  const parts = { plain: { system: createLvm(), ...HERE } };
  const disks = vg === undefined ? files : createInstanceDisks(dir, parts);
  await files.createEmpty({ ...web1, disks: vg === undefined ? web1.disks : [] });
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  t.after(() => index[Symbol.asyncDispose]());
  const outcomesDir = canKeep ? join(dir, 'outcomes') : join(dir, 'a-file', 'outcomes');
  await writeFile(join(dir, 'a-file'), '');
  const startOutcomes = (signal: AbortSignal) =>
    new Outcomes({
      ...{ dir: outcomesDir, jobs: createJobRepository(store, problems), instances, signal },
      logger: silentLogger,
    });
  const waits = new AbortController();
  t.after(() => waits.abort());
  const outcomes = startOutcomes(waits.signal);
  const overview = createOwnOverview({
    ...{ instances, index, outcomes, clusters, nodeName: 'node1', owns: () => true },
    ...{ runner: { running: () => undefined }, orphans: { list: () => [] } },
    guestReports: { report: () => null },
    lifecycles: { explain: () => null },
    bootViews: { state: () => null },
    describeNode: () => Promise.reject(new Error('nobody asks')),
    listOs: () => Promise.resolve([]),
  } satisfies OverviewSources);
  const opcode = parseOpcode({ opcode: 'INSTANCE_REMOVE', name: 'web1' });
  assert.ok(opcode.opcode === 'INSTANCE_REMOVE');
  const handler = removeInstanceHandler({
    ...{ instances, outcomes, disks, logDir: dir, clock, lifecycles: createLabLifecycles() },
    runner: { checkDisksUnused: () => Promise.resolve(), stop: () => Promise.resolve() },
    // The removal uses no other dependencies.
  } as unknown as OperationDependencies);
  const signal = AbortSignal.timeout(60_000);
  const logged: string[] = [];
  const report = { log: (line: string) => void logged.push(line) };
  // The removal reports no stages.
  const context = { jobId: 7, signal, report } as unknown as JobContext;
  const remove = async (): Promise<unknown> => (await handler.prepare(opcode, signal))(context);
  const diskPath = disks.pathOf(web1, 0);
  const seen = { room, instances, web1, diskPath, outcomesDir, overview };
  return { ...seen, logged, remove, outcomes, waits, startOutcomes };
}

type Node = Awaited<ReturnType<typeof createNode>>;

/** @returns the removal, which waits for room: its disks are gone, its record is not */
async function removeWithoutRoom({ room, diskPath, remove }: Node): Promise<[Promise<unknown>]> {
  const refused = Promise.withResolvers<void>();
  room.isFull = true;
  // Wait for the second refusal: the first is of the commit before its disks are removed.
  room.onRefused = () => {
    if (!existsSync(diskPath)) refused.resolve();
  };
  const removing = remove();
  await Promise.race([refused.promise, removing]);
  return [removing];
}

for (const canKeep of [true, false]) {
  const how = canKeep ? 'kept in a file' : 'which no file is kept of';
  test(`a removal without room for its record, ${how}, ends when there is some`, async (t) => {
    const node = await createNode(t, { canKeep });
    const { room, instances, overview, logged } = node;
    const [removing] = await removeWithoutRoom(node);
    // The overview shows that it cannot be started, although the store does not know yet.
    assert.equal((await instances.findByName('web1')).installState, 'installed');
    const info = await overview.instance('web1');
    assert.deepEqual([info.status, info.adminState], ['install_failed', 'down']);
    assert.match(info.explanation, /its removal has begun/);
    const [listed] = [...(await overview.summaries())];
    assert.deepEqual([listed?.status, listed?.adminState], ['install_failed', 'down']);
    const [slice] = await Array.fromAsync(overview.instanceSlices());
    assert.equal(slice?.[0]?.status, 'install_failed');
    assert.match(logged.join(), /its record follows when the store has space/);
    room.isFull = false;
    await removing;
    await assert.rejects(instances.findByName('web1'), { code: 'INSTANCE_NOT_FOUND' });
  });
}

test('a removal that a daemon could not write while it ran is written by the next one', async (t) => {
  const node = await createNode(t);
  const { room, instances, waits, outcomesDir, startOutcomes } = node;
  const [removing] = await removeWithoutRoom(node);
  waits.abort();
  await assert.rejects(removing, { code: 'DISK_FULL' });
  room.isFull = false;
  assert.equal((await instances.findByName('web1')).installState, 'installed');
  await startOutcomes(AbortSignal.timeout(60_000)).resume();
  await assert.rejects(instances.findByName('web1'), { code: 'INSTANCE_NOT_FOUND' });
  assert.deepEqual(await readdir(outcomesDir), []);
});

test('one whose disks were about to go when its daemon was killed is nothing that is started', async (t) => {
  const { room, instances, web1, outcomes, waits, startOutcomes } = await createNode(t);
  room.isFull = true;
  await outcomes.noteRemoval(web1.uuid, { jobId: 7, beganAtMs: 1000 });
  waits.abort();
  room.isFull = false;
  await startOutcomes(AbortSignal.timeout(60_000)).resume();
  const { installState, adminState, install } = await instances.findByName('web1');
  assert.deepEqual([installState, adminState, install?.jobId], ['failed', 'down', 7]);
});

test('one whose volume group is not there goes, and what stays on it is told with what to do', async (t) => {
  const vg = 'gnt-is-nowhere';
  const { instances, web1, logged, remove } = await createNode(t, { vg });
  await remove();
  await assert.rejects(instances.findByName('web1'), { code: 'INSTANCE_NOT_FOUND' });
  const [line, ...others] = logged;
  assert.deepEqual(others, []);
  const volume = `${vg}/${web1.disks[0]?.uuid}.disk`;
  assert.match(line ?? '', new RegExp(`no volume group ${vg}, .* lvremove ${volume}`));
});

test('a removal that found no room until it was given up is asked for again, and is done', async (t) => {
  const node = await createNode(t);
  const { room, instances, waits, overview, remove } = node;
  const [removing] = await removeWithoutRoom(node);
  waits.abort();
  await assert.rejects(removing, { code: 'DISK_FULL' });
  // A repeated removal fails in the same way, although the disks are gone.
  await assert.rejects(remove(), { code: 'DISK_FULL' });
  assert.equal((await overview.instance('web1')).status, 'install_failed');
  room.isFull = false;
  assert.deepEqual(await remove(), { name: 'web1' });
  await assert.rejects(instances.findByName('web1'), { code: 'INSTANCE_NOT_FOUND' });
});
