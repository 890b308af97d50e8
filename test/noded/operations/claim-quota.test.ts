import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';
import { GIB } from '#shared/units/bytes.ts';
import {
  claimAfter,
  claimOf,
  claimOfNew,
  findQuotaExcess,
} from '../../../noded/operations/claim-quota.ts';
import { createOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const disk = { sizeBytes: GIB };
const web = instanceRecord({
  ...{ name: 'web', tags: ['a'], disks: [disk, disk] },
  beparams: { memoryMiB: 1024, vcpus: 2 },
});
const CLAIM = { name: 'web', tags: ['a'], memoryMiB: 1024, vcpus: 2, diskBytes: 2 * GIB };
const after = (asked: object) => claimAfter(opcode.parse({ name: 'web', ...asked }), web);

test('a new instance claims its defaults, and no disk if it is diskless', () => {
  const { memoryMiB, vcpus, diskBytes } = claimOfNew(createOpcode({ name: 'new' }));
  const made = instanceRecord({ name: 'new' });
  assert.deepEqual({ name: 'new', tags: [], memoryMiB, vcpus, diskBytes }, claimOf(made));
  assert.equal(claimOfNew(createOpcode({ diskTemplate: 'diskless' })).diskBytes, 0);
});

test('every operation that takes more claims it', () => {
  for (const [asked, claim] of [
    [{ opcode: 'INSTANCE_SET_PARAMS', beparams: { memoryMiB: 2048 } }, { memoryMiB: 2048 }],
    [{ opcode: 'INSTANCE_SET_PARAMS', beparams: { memoryMiB: null } }, { memoryMiB: 512 }],
    [{ opcode: 'INSTANCE_SET_PARAMS', disks: [{ action: 'add', disk }] }, { diskBytes: 3 * GIB }],
    [{ opcode: 'INSTANCE_GROW_DISK', disk: 0, amountBytes: GIB }, { diskBytes: 3 * GIB }],
    [
      { opcode: 'INSTANCE_GROW_DISK', disk: 1, amountBytes: 4 * GIB, absolute: true },
      { diskBytes: 5 * GIB },
    ],
    [{ opcode: 'INSTANCE_COPY', newName: 'web2' }, { name: 'web2' }],
    [{ opcode: 'INSTANCE_SNAPSHOT', snapshot: 's' }, { diskBytes: 4 * GIB }],
  ] as const)
    assert.deepEqual(after(asked), { ...CLAIM, ...claim }, JSON.stringify(asked));
  for (const act of ['STARTUP', 'SHUTDOWN', 'REINSTALL', 'REMOVE'])
    assert.equal(after({ opcode: `INSTANCE_${act}` }), null, act);
});

test('a QEMU process counts with the memory that it was started with', () => {
  const { nics, disks, beparams } = web;
  const lowered = { ...web, beparams: { memoryMiB: 16, vcpus: 1 } };
  assert.equal(claimOf(lowered).memoryMiB, 16);
  assert.deepEqual(claimOf({ ...lowered, partsOfRun: { nics, disks, beparams } }), CLAIM);
});

test('the first byte beyond a quota is refused, and nothing that takes no more', () => {
  const exact = { instances: 2, memoryMiB: 2048, vcpus: 4, diskBytes: 4 * GIB };
  const other = { ...CLAIM, name: 'db' };
  assert.equal(findQuotaExcess(exact, [CLAIM], other), undefined);
  for (const key of ['instances', 'memoryMiB', 'vcpus', 'diskBytes'] as const) {
    const less = { ...exact, [key]: exact[key] - 1 };
    const excess = { key, value: exact[key], most: exact[key] - 1 };
    assert.deepEqual(findQuotaExcess(less, [CLAIM], other), excess);
    // The quota was lowered below the present use.
    assert.equal(findQuotaExcess(less, [CLAIM, other], other), undefined);
  }
});

test('a record and a job that make the same instance count once', () => {
  const quota = { instances: 1, memoryMiB: 2048 };
  assert.equal(findQuotaExcess(quota, [CLAIM, CLAIM], { ...CLAIM, memoryMiB: 2048 }), undefined);
  assert.equal(findQuotaExcess(quota, [CLAIM], { ...CLAIM, memoryMiB: 2049 })?.value, 2049);
});
