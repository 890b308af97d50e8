import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord, InstanceSnapshot } from '#shared/contract/instance.ts';
import { MAX_SNAPSHOTS } from '#shared/contract/instance.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import {
  planRestore,
  removeSnapshotHandler,
  restoreSnapshotHandler,
  takeSnapshotHandler,
} from '../../../noded/operations/snapshots.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, type World } from './operation-lab.ts';

const made = instanceRecord(
  { name: 'web1', disks: [{ sizeBytes: 512 }] },
  { installState: 'installed' },
);
const snapshot: InstanceSnapshot = {
  ...{ uuid: made.uuid, name: 'one', takenAtMs: 0, wasRunning: false },
  ...{ instanceId: made.instanceId, installState: 'installed', disks: made.disks },
  hostKeys: { instanceId: made.instanceId, keys: ['ssh-ed25519 OLD'] },
};
const web1: InstanceRecord = { ...made, snapshots: [snapshot] };

const begun = {
  ...{ jobId: 7, state: 'installing', startedAtMs: 0, endedAtMs: null },
  ...{ stage: null, error: null, stages: [], logFile: null },
} satisfies InstanceRecord['install'];

/**
 * Returns dependencies that fail on any further use: a refused operation must not touch the node.
 */
function dependenciesOf(
  instance: InstanceRecord,
  machine?: { readonly halt: { readonly reason: string } | null },
) {
  return {
    instances: { findByName: () => Promise.resolve(instance) },
    runner: { isRunning: () => machine !== undefined, running: () => machine && { machine } },
    clock: new ManualClock(0),
    // A refusal uses no other members.
  } as unknown as Parameters<typeof takeSnapshotHandler>[0];
}
const signal = new AbortController().signal;
const take = (instance: InstanceRecord, name: string, halt?: { readonly reason: string }) =>
  takeSnapshotHandler(dependenciesOf(instance, halt && { halt })).prepare(
    { opcode: 'INSTANCE_SNAPSHOT', name: 'web1', snapshot: name },
    signal,
  );
const restore = (instance: InstanceRecord, name: string, isRunning = false) =>
  restoreSnapshotHandler(dependenciesOf(instance, isRunning ? { halt: null } : undefined)).prepare(
    { opcode: 'INSTANCE_RESTORE', name: 'web1', snapshot: name },
    signal,
  );

test('a snapshot is refused whose name is taken, and one too many', async () => {
  await assert.rejects(take(web1, 'one'), { code: 'CONFLICT', hint: /remove-snapshot web1 one/ });
  const many = Array.from({ length: MAX_SNAPSHOTS }, (_, index) => ({
    ...snapshot,
    name: `s${index}`,
  }));
  await assert.rejects(take({ ...web1, snapshots: many }, 'new'), { code: 'VALIDATION' });
});

test('a snapshot of what is half installed, or stands still at a full disk, is refused', async () => {
  for (const installState of ['failed', 'installing'] as const)
    await assert.rejects(take({ ...web1, installState }, 'new'), { code: 'INSTANCE_STATE' });
  await assert.rejects(take(web1, 'new', { reason: 'disk-full' }), {
    code: 'INSTANCE_STATE',
    message: /is paused \(disk-full\)/,
  });
});

test('a snapshot that is not there is named among those that are', async () => {
  await assert.rejects(restore(web1, 'two'), { code: 'NOT_FOUND', hint: 'It has one' });
  const removing = removeSnapshotHandler(dependenciesOf({ ...web1, snapshots: [] }));
  await assert.rejects(
    removing.prepare({ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name: 'web1', snapshot: 'x' }, signal),
    { code: 'NOT_FOUND', hint: /It has none/ },
  );
});

test('disks of a running instance, and others than those of the snapshot, stay as they are', async () => {
  await assert.rejects(restore(web1, 'one', true), { code: 'INSTANCE_STATE', message: /running/ });
  const more = [...web1.disks, { uuid: web1.instanceId, name: null, sizeBytes: 512 }];
  await assert.rejects(restore({ ...web1, disks: more }, 'one'), {
    code: 'INSTANCE_STATE',
    message: /disk 1 was added since/,
    hint: /--disk 1:remove/,
  });
  const two = { ...snapshot, disks: more };
  await assert.rejects(restore({ ...web1, snapshots: [two] }, 'one'), (error: AppError) => {
    assert.equal(error.code, 'INSTANCE_STATE');
    assert.match(error.message, /its disk 1 was removed since/);
    // Removing another disk would not help.
    assert.doesNotMatch(error.hint ?? '', /:remove/);
    return true;
  });
});

test('a restored instance has the disks and the installation of then, and all else of now', () => {
  const now: InstanceRecord = {
    ...web1,
    ...{ instanceId: made.channel.uuid, installState: 'failed', tags: ['blue'] },
    disks: web1.disks.map((disk) => ({ ...disk, sizeBytes: 1024 })),
  };
  const { tags, ...restored } = planRestore(now, snapshot, made.uuid);
  assert.deepEqual(tags, ['blue']);
  assert.deepEqual(
    [restored.instanceId, restored.installState, restored.disks, restored.restoreId],
    [made.instanceId, 'installed', made.disks, made.uuid],
  );
  assert.equal(restored.snapshots.length, 1, 'it can be restored again');
});

test('the keys that a guest of then had are trusted again, and no others', () => {
  const later = { instanceId: made.channel.uuid, keys: ['ssh-ed25519 NEW'] };
  const now = { ...web1, instanceId: later.instanceId, hostKeys: later };
  assert.deepEqual(planRestore(now, snapshot, made.uuid).hostKeys, snapshot.hostKeys);
  // A snapshot without host keys falls back to the accepted ones of the same installation.
  const accepted = { ...web1, hostKeys: { ...later, instanceId: made.instanceId } };
  const silent = { ...snapshot, hostKeys: null };
  assert.deepEqual(planRestore(accepted, silent, made.uuid).hostKeys, accepted.hostKeys);
});

test('a restored instance tells of no installation that is not on its disks', () => {
  const install = { ...begun, state: 'success' as const };
  const former = { adminState: 'up', installState: 'failed', install: null } as const;
  const after = (now: Partial<InstanceRecord>) =>
    planRestore({ ...web1, install, beforeReinstall: former, ...now }, snapshot, made.uuid);
  assert.deepEqual([after({}).install, after({}).beforeReinstall], [install, null]);
  assert.equal(after({ install: { ...install, state: 'failed' } }).install, null);
  assert.equal(after({ instanceId: made.channel.uuid }).install, null);
});

test('while an installation may still take its place, snapshots are left alone', async () => {
  const installing = { ...web1, installState: 'installing', install: begun } as const;
  const expected = { code: 'INSTANCE_STATE', hint: /gnt-job watch 7/ };
  await assert.rejects(restore(installing, 'one'), expected);
  const removing = removeSnapshotHandler(dependenciesOf(installing));
  await assert.rejects(
    removing.prepare({ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name: 'web1', snapshot: 'one' }, signal),
    expected,
  );
});

const input = { name: 'web1', snapshot: 'one' };
const RUNNING: World = {
  runner: { isRunning: () => true, running: () => ({ machine: { halt: null } }) },
};

for (const [what, world, wasRunning, checks] of [
  ['a stopped instance, whose disks are found unused', {}, false, ['runner.checkDisksUnused']],
  ['a running instance', RUNNING, true, []],
] as const) {
  test(`a snapshot of ${what} is in its record after its disks are taken`, async () => {
    const { steps, record, run } = createOperationLab(made, world);
    const result = await run(takeSnapshotHandler, { opcode: 'INSTANCE_SNAPSHOT', ...input });
    assert.deepEqual(steps, [
      ...[...checks, 'snapshots.check', 'execute', 'snapshots.take', 'instances.update'],
    ]);
    const [taken = assert.fail(), ...others] = record()?.snapshots ?? [];
    assert.deepEqual(others, []);
    const { instanceId, disks, hostKeys } = made;
    assert.deepEqual(taken, {
      ...{ uuid: taken.uuid, name: 'one', takenAtMs: 5000, wasRunning },
      ...{ instanceId, installState: 'installed', disks, hostKeys },
    });
    assert.deepEqual(result, { ...input, uuid: taken.uuid });
  });
}

test('a commit that is tried twice leaves one snapshot, beside the earlier ones', async () => {
  const other = { ...snapshot, uuid: made.channel.uuid, name: 'earlier' };
  const take = async (
    _: unknown,
    __: unknown,
    { commit }: { readonly commit: () => Promise<unknown> },
  ) => {
    await commit();
    await commit();
    return { stillMs: 0 };
  };
  const { record, run } = createOperationLab(
    { ...made, snapshots: [other] },
    { snapshots: { take } },
  );
  await run(takeSnapshotHandler, { opcode: 'INSTANCE_SNAPSHOT', ...input });
  assert.deepEqual(
    record()?.snapshots.map(({ name }) => name),
    ['earlier', 'one'],
  );
});

test('only a request for it copies the disks of a snapshot', async () => {
  const mayCopy: unknown[] = [];
  const snapshots = {
    check: async (_: unknown, may: boolean) => void mayCopy.push(may),
    take: async (_: unknown, __: unknown, options: { readonly mayCopy: boolean }) => {
      mayCopy.push(options.mayCopy);
      return { stillMs: 0 };
    },
  };
  for (const copy of [undefined, true]) {
    const { run } = createOperationLab(made, { snapshots });
    await run(takeSnapshotHandler, { opcode: 'INSTANCE_SNAPSHOT', ...input, copy });
  }
  assert.deepEqual(mayCopy, [false, false, true, true]);
});

test('a removed snapshot leaves the others, and its record after its files', async () => {
  const other = { ...snapshot, uuid: made.channel.uuid, name: 'two' };
  const { steps, record, run } = createOperationLab({ ...web1, snapshots: [snapshot, other] });
  const result = await run(removeSnapshotHandler, {
    ...{ opcode: 'INSTANCE_REMOVE_SNAPSHOT', ...input },
  });
  assert.deepEqual(result, input);
  assert.deepEqual(steps, ['disks.settle', 'execute', 'snapshots.remove', 'instances.update']);
  assert.deepEqual(record()?.snapshots, [other]);
});

test('a restore settles and checks the disks before it replaces them', async () => {
  const { steps, lines, record, run } = createOperationLab(web1);
  const result = await run(restoreSnapshotHandler, { opcode: 'INSTANCE_RESTORE', ...input });
  assert.deepEqual(result, input);
  assert.deepEqual(steps, [
    ...['runner.checkDisksUnused', 'disks.settle', 'snapshots.checkRestore', 'execute'],
    ...['snapshots.restore', 'instances.update'],
  ]);
  assert.ok(record()?.restoreId);
  assert.deepEqual(lines, []);
});

test('a restore of an earlier installation warns that the parameters are the present ones', async () => {
  const { lines, run } = createOperationLab({ ...web1, instanceId: made.channel.uuid });
  await run(restoreSnapshotHandler, { opcode: 'INSTANCE_RESTORE', ...input });
  assert.match(lines.join(), /^warn: the restored disks belong to an earlier installation/);
});
