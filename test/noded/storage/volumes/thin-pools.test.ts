import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type {
  Volume,
  VolumeErrors,
} from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import {
  findPools,
  FULL_SHARE,
  neededInPool,
  poolsOf,
  requirePool,
  type ThinPool,
} from '../../../../noded/storage/drivers/volumes/thin-pools.ts';
import { THICK } from './sample-volumes.ts';

const pool = (changes: Partial<ThinPool> = {}): ThinPool => ({
  ...{ group: 'xenvg', name: 'thin', sizeBytes: 1000, freeBytes: 500 },
  ...{ usedShare: 0.5, isZeroing: true, ...changes },
});
const refused = (name: string) => () => new AppError('HOST_PREREQUISITE', name);
const errors = {
  noPool: refused('no pool'),
  leakyPool: refused('leaky pool'),
  fullPool: refused('full pool'),
} as unknown as VolumeErrors;
const PLACE = { group: 'xenvg', pool: 'thin' };

for (const [what, pools, message] of [
  ['a pool that hands out blocks with their former content', [pool({ isZeroing: false })], 'leaky'],
  ['a pool that is full to the limit', [pool({ usedShare: FULL_SHARE })], 'full'],
  ['a pool of another group', [pool({ group: 'other' })], 'no'],
  ['a pool of another name', [pool({ name: 'other' })], 'no'],
  ['a group without pools', [], 'no'],
] as const) {
  test(`a new volume is refused in ${what}`, () => {
    assert.throws(() => requirePool(PLACE, pools, errors), { message: `${message} pool` });
  });
}

test('a new volume gets the zeroing pool of its group and name that is below the limit', () => {
  const wanted = pool({ usedShare: FULL_SHARE - 0.01 });
  assert.equal(
    requirePool(PLACE, [pool({ name: 'a' }), pool({ group: 'b' }), wanted], errors),
    wanted,
  );
});

test('only thin pools count as pools; an inactive pool counts as full', () => {
  const volume = (name: string, changes: Partial<Volume>): Volume => ({
    ...{ ...THICK, group: 'xenvg', groupUuid: 'g', name, sizeBytes: 1000, tags: [], origin: '' },
    ...{ isActive: true, ...changes },
  });
  const found = findPools([
    volume('disk', { pool: 'thin', dataShare: 0.1 }),
    volume('thin', { isPool: true, isZeroing: true, dataShare: 0.25, usedShare: 0.3 }),
    volume('off', { isPool: true, isActive: false }),
  ]);
  assert.deepEqual(found, [
    pool({ usedShare: 0.3, freeBytes: 750 }),
    pool({ name: 'off', usedShare: 1, freeBytes: 0, isZeroing: false }),
  ]);
});

test('each thin pool and each dataset of some disks is named once, with a hint of its own', () => {
  const sources = poolsOf([
    { vg: 'xenvg', pool: 'thin' },
    { vg: 'xenvg', pool: 'thin' },
    { vg: 'xenvg' },
    { dataset: 'tank/gnt' },
    { dataset: 'tank/gnt' },
  ]);
  const names = sources.map(({ name }) => name);
  assert.deepEqual(names, ['thin pool xenvg/thin', 'ZFS dataset tank/gnt']);
  assert.match(sources[0]?.hint ?? '', /lvextend --size \+10g xenvg\/thin/);
  assert.doesNotMatch(sources[1]?.hint ?? '', /lvextend/);
});

for (const [what, volumes, imageBytes, expected] of [
  [
    'the used bytes of the volumes, rounded up',
    [{ sizeBytes: 8 * MIB + 1, dataShare: 0.5 }],
    0,
    4 * MIB + 1,
  ],
  ['the image where that is larger', [{ sizeBytes: 8 * MIB, dataShare: 0.25 }], 3 * MIB, 3 * MIB],
  ['one MiB at least', [{ sizeBytes: 8 * MIB, dataShare: null }], 0, MIB],
  ['the size of the disks at most', [{ sizeBytes: 64 * MIB, dataShare: 1 }], 99 * MIB, 12 * MIB],
] as const) {
  test(`disks need of a pool ${what}`, () => {
    const disks = [4 * MIB, 8 * MIB].map((sizeBytes) => ({ uuid: 'd', sizeBytes }));
    const taken = volumes.map((volume) => ({ name: 'v', ...volume }));
    assert.equal(neededInPool(disks, taken, imageBytes), expected);
  });
}
