import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Opcode, OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { GIB } from '#shared/units/bytes.ts';
import { handlerOf } from '../../../noded/jobs/job-handler.ts';
import { createJobHandlers } from '../../../noded/operations/job-handlers.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';
import { createOperationLab, type World } from './operation-lab.ts';

const web1 = instanceRecord(
  { name: 'web1', disks: [{ sizeBytes: GIB }] },
  { installState: 'installed' },
);
const dispatch = (dependencies: OperationDependencies) => ({
  prepare: (opcode: Opcode, signal: AbortSignal) =>
    handlerOf(createJobHandlers(dependencies), opcode).prepare(opcode, signal),
});
const run = (input: OpcodeInput, world: World = {}, stored = web1) => {
  const lab = createOperationLab(stored, world);
  return { ...lab, ended: lab.run(dispatch, input) };
};
const OFFLINE: World = { nodes: { flagsOf: async () => ({ drained: false, offline: true }) } };
const OUTSIDE: World = {
  membership: {
    requireMember: () => {
      throw new AppError('NODE_REMOVED', 'this node was removed');
    },
  },
};
const rename = { opcode: 'INSTANCE_RENAME', name: 'web1', newName: 'web2' } as const;
const grow = { opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk: 0, amountBytes: GIB } as const;
const removeProfile = { opcode: 'PROFILE_REMOVE', name: 'absent' } as const;

test('an offline node runs no operation, except those that any node runs', async () => {
  await assert.rejects(run(rename, OFFLINE).ended, { code: 'NODE_OFFLINE' });
  await run({ opcode: 'BACKUP_REMOVE', name: 'old' }, OFFLINE).ended;
});

test('a node outside of the cluster changes nothing of it', async () => {
  await assert.rejects(run(removeProfile, OUTSIDE).ended, { code: 'NODE_REMOVED' });
  await run(rename, OUTSIDE).ended;
});

test('only the node of an instance has its disks: another one refuses', async () => {
  const elsewhere = createOperationLab(web1);
  const dependencies = new Proxy(elsewhere.dependencies, {
    get: (all, name): unknown => (name === 'owns' ? () => false : Reflect.get(all, name)),
  });
  await assert.rejects(
    elsewhere.run(() => dispatch(dependencies), rename),
    { code: 'CONFLICT', details: { node: web1.primaryNode } },
  );
});

/** Runs an operation on a node with little free space; its disks may grow to `promisedGiB`. */
async function warnings(input: OpcodeInput, freeGiB: number, promisedGiB = 0, percent = 10) {
  const lab = createOperationLab(web1, {
    clusters: { load: async () => ({ ...clusterRecord, lowSpacePercent: percent }) },
  });
  const place = { place: 'disks', path: '/srv', device: 1, totalBytes: 100 * GIB };
  const members: Readonly<Record<string | symbol, unknown>> = {
    measurePlaces: async () => [{ ...place, freeBytes: freeGiB * GIB }],
    promiseOfDisks: async () => ({ instances: 3, promisedBytes: promisedGiB * GIB }),
  };
  const dependencies = new Proxy(lab.dependencies, {
    get: (all, name): unknown => members[name] ?? Reflect.get(all, name),
  });
  await lab.run(() => dispatch(dependencies), input);
  return lab.lines.filter((line) => line.startsWith('warn: ')).join('\n');
}

test('an operation that takes space warns of a file system below the limit', async () => {
  assert.match(await warnings(grow, 9.9), /9\.9 GiB of 100\.0 GiB free below \/srv/);
  assert.equal(await warnings(grow, 10), '');
  assert.equal(await warnings(grow, 9, 0, 0), '', 'the administrator switched it off');
  assert.equal(await warnings(rename, 9), '', 'a rename takes no space');
});

test('an operation that takes space warns of disks that can outgrow their file system', async () => {
  assert.match(await warnings(grow, 50, 101), /can grow to 101\.0 GiB .* of 100\.0 GiB/);
  assert.equal(await warnings(grow, 50, 100), '');
});
