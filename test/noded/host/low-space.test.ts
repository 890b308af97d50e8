import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import { describeSpace, findLowSpace } from '../../../noded/host/low-space.ts';

const on = (device: number, freeGib: number) => ({
  ...{ device, path: `/${device}`, totalBytes: 100 * GIB, freeBytes: freeGib * GIB },
});

test('a file system with less than a tenth free is low, unless the operator has another share', () => {
  const places = [
    { ...on(1, 9), place: 'store' as const },
    { ...on(2, 10), place: 'disks' as const },
  ];
  const low = (percent?: number) => findLowSpace(places, percent).map(({ path }) => path);
  assert.deepEqual(low(), ['/1']);
  assert.deepEqual(low(11), ['/1', '/2']);
  assert.deepEqual(low(9), []);
  assert.deepEqual(low(0), []);
});

test('places on one file system are listed together', () => {
  const places = (['store', 'disks'] as const).map((place) => ({ ...on(1, 3), place }));
  assert.deepEqual(findLowSpace(places).map(describeSpace), [
    '3.0 GiB of 100.0 GiB free below /1 (store, disks)',
  ]);
});
