import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { silentLogger } from '#shared/log/log.ts';
import { holdImages } from '../../../noded/storage/hold-images.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import { MachineKeeper } from '../../../noded/instances/machines/machine-keeper.ts';
import type { Orphans } from '../../../noded/instances/machines/orphans.ts';
import type { Views } from '../../../noded/instances/view/views.ts';
import { type JobContext, handlerOf } from '../../../noded/jobs/job-handler.ts';
import type { JobRepository } from '../../../noded/jobs/job-repository.ts';
import { createJobHandlers } from '../../../noded/operations/job-handlers.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import type { ClusterRepository } from '../../../noded/records/cluster-repository.ts';
import type { InstanceRepository } from '../../../noded/records/instance-repository.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from '../support/fake-node.ts';
import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { noBoots } from '../support/no-boots.ts';
import { createTestOutcomes } from '../support/test-outcomes.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';
import { bridgesOnly } from '../support/bridges-only.ts';

/**
 * Creates a node that believes web1 to be stopped; `changes` lists the calls that change the store.
 */
async function createNode(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-disks-in-use-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const web1 = instanceRecord(
    { name: 'web1', disks: [{ sizeBytes: 65_536 }] },
    { installState: 'installed' },
  );
  const changes: string[] = [];
  const changed: { readonly record: InstanceRecord; readonly hasDisks: boolean }[] = [];
  const instances = {
    findByName: (name: string) =>
      name === 'web1' ? Promise.resolve(web1) : Promise.reject(new Error(`no ${name}`)),
    update: (_uuid: string, change: (record: InstanceRecord) => InstanceRecord) => {
      changes.push('update');
      changed.push({ record: change(web1), hasDisks: existsSync(disks.pathOf(web1, 0)) });
      return Promise.resolve(web1);
    },
    rename: () => Promise.resolve(web1).finally(() => changes.push('rename')),
    remove: () => Promise.resolve().finally(() => changes.push('remove')),
    // A refusal uses no other methods.
  } as unknown as InstanceRepository;
  const clock = new ManualClock();
  const metad = new FakeMetad();
  const hypervisor = new FakeHypervisor();
  const keeper = new MachineKeeper({
    enterShared: () => Promise.resolve(null),
    nicTaps: bridgesOnly,
    boots: noBoots,
    ...{ hypervisor, network: new FakeNetwork(), metad, logger: silentLogger, clock },
    onReleased: () => undefined,
    onExit: () => undefined,
  });
  const disks = createInstanceDisks(dir);
  await disks.createEmpty(web1);
  const path = disks.pathOf(web1, 0);
  await writeFile(path, 'data of a guest', { flag: 'r+' });
  const runner = new InstanceRunner({
    nicTaps: bridgesOnly,
    ...{
      instances,
      keeper,
      metad,
      disks,
      guestReports: {
        follow: () => undefined,
        followAdopted: () => undefined,
        forget: () => Promise.resolve(),
      },
      lifecycles: createLabLifecycles(),
      clock,
    },
    views: {} as Views,
    chooseAccelerator: () => Promise.resolve('tcg'),
  });
  const clusters = {
    load: () => Promise.resolve(clusterRecord),
    loadProfile: () => Promise.resolve(undefined),
  } as unknown as ClusterRepository;
  const orphans = { list: () => [], find: () => undefined } as unknown as Orphans;
  const handlers = createJobHandlers({
    ...{ instances, disks, runner, orphans, clusters, owns: () => true, logDir: dir, clock },
    lifecycles: createLabLifecycles(),
    // No job gets as far as its end.
    outcomes: createTestOutcomes(join(dir, 'outcomes'), {} as JobRepository, instances),
    nodes: { flagsOf: () => Promise.resolve(NO_FLAGS) },
    // No job gets as far as an installation.
  } as unknown as OperationDependencies);
  const signal = AbortSignal.timeout(60_000);
  const context = { jobId: 1, signal, report: { log: () => undefined } } as unknown as JobContext;
  const prepare = (input: OpcodeInput) => {
    const opcode = parseOpcode(input);
    return handlerOf(handlers, opcode).prepare(opcode, signal);
  };
  return { path, changes, changed, hypervisor, prepare, context };
}

for (const opcode of [
  { opcode: 'INSTANCE_REMOVE', name: 'web1' },
  { opcode: 'INSTANCE_SHUTDOWN', name: 'web1' },
  { opcode: 'INSTANCE_STARTUP', name: 'web1' },
  { opcode: 'INSTANCE_RENAME', name: 'web1', newName: 'web2' },
] as const satisfies readonly OpcodeInput[]) {
  test(`${opcode.opcode} is refused while a machine that this node does not know has the disks`, async (t) => {
    const { path, changes, hypervisor, prepare, context } = await createNode(t);
    {
      await using held = new AsyncDisposableStack();
      held.use(await holdImages(dirname(path)));
      await assert.rejects(prepare(opcode), { code: 'DISK_IN_USE', message: new RegExp(path) });
    }
    assert.deepEqual(changes, []);
    assert.deepEqual(hypervisor.machines, []);
    assert.match(await readFile(path, 'latin1'), /^data of a guest/);
    if (opcode.opcode !== 'INSTANCE_SHUTDOWN') return;
    await (
      await prepare(opcode)
    )(context);
    assert.deepEqual(changes, ['update']);
  });
}

test('a machine that gets the disks between check and work keeps them, and the instance its record', async (t) => {
  const { path, changes, prepare, context } = await createNode(t);
  const execute = await prepare({ opcode: 'INSTANCE_REMOVE', name: 'web1' });
  await using held = new AsyncDisposableStack();
  held.use(await holdImages(dirname(path)));
  await assert.rejects(execute(context), { code: 'DISK_IN_USE' });
  assert.deepEqual(changes, []);
  assert.match(await readFile(path, 'latin1'), /^data of a guest/);
});

test('before its disks go, an instance is nothing that is started: its removal may be interrupted', async (t) => {
  const { path, changes, changed, prepare, context } = await createNode(t);
  const execute = await prepare({ opcode: 'INSTANCE_REMOVE', name: 'web1' });
  await execute(context);
  assert.equal(changes.at(-1), 'remove');
  const { record, hasDisks } = changed.at(-1) ?? {};
  assert.deepEqual([record?.installState, record?.adminState, hasDisks], ['failed', 'down', true]);
  assert.match(record?.install?.error?.message ?? '', /removal has begun/);
  assert.ok(!existsSync(path));
});
