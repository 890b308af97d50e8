import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import { plannedSize } from '../../../noded/operations/grow-disk.ts';

const web1 = {
  name: 'web1',
  disks: [10, 20].map((sizeGiB) => ({
    uuid: '0e7a6a3e-0000-4000-8000-000000000000',
    name: null,
    sizeBytes: sizeGiB * GIB,
  })),
};
const asked = (disk: number, amountBytes: number, absolute = false) =>
  ({ opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk, amountBytes, absolute }) as const;

test('an amount is added, an absolute one is the new size', () => {
  assert.equal(plannedSize(web1, asked(1, 5 * GIB)), 25 * GIB);
  assert.equal(plannedSize(web1, asked(0, 11 * GIB, true)), 11 * GIB);
});

test('no disk shrinks, or is left as it is', () => {
  for (const sizeBytes of [9 * GIB, 10 * GIB])
    assert.throws(() => plannedSize(web1, asked(0, sizeBytes, true)), {
      code: 'VALIDATION',
      message: /disk 0 of 'web1' already has 10240 MiB/,
    });
});

test('a disk that is not there is named, with those that are', () => {
  assert.throws(() => plannedSize(web1, asked(2, GIB)), {
    message: /no disk 2: it has disk 0 to 1/,
  });
  assert.throws(() => plannedSize({ name: 'web1', disks: [] }, asked(0, GIB)), {
    message: /it has no disks/,
  });
});
