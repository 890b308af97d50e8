import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type { VolumeGroup } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import {
  createVolumeRoom,
  planRoomBeside,
} from '../../../../noded/storage/drivers/volumes/volume-room.ts';

const group = { name: 'xenvg', uuid: 'g', sizeBytes: 8, freeBytes: 4, extentBytes: 1 };
const asking = (listGroups: () => Promise<readonly VolumeGroup[]>, name?: string) =>
  createVolumeRoom({ ...createLvm(), listGroups, listVolumes: () => Promise.resolve([]) }, () =>
    Promise.resolve(name),
  );

test('a node tells the room of the group for new disks, and nothing where it has none', async () => {
  const there = (): Promise<readonly VolumeGroup[]> => Promise.resolve([group]);
  assert.deepEqual(await asking(there, 'xenvg')(), { sizeBytes: 8, freeBytes: 4 });
  assert.equal(await asking(there, 'other')(), undefined);
  const missing = (): Promise<never> => Promise.reject(new AppError('HOST_PREREQUISITE', 'none'));
  assert.equal(await asking(missing, 'xenvg')(), undefined);
  assert.equal(await asking(() => assert.fail('LVM was asked for nobody'))(), undefined);
});

test('an LVM that hangs keeps nobody waiting for the room of a node, and is asked once', async (t) => {
  // The wait does not keep the process alive, and no other test may be running.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  let count = 0;
  const room = asking(() => {
    count += 1;
    return new Promise(() => undefined);
  }, 'xenvg');
  assert.equal(await room(), undefined);
  const beforeMs = performance.now();
  for (let again = 0; again < 50; again += 1) assert.equal(await room(), undefined);
  assert.ok(performance.now() - beforeMs < 1000);
  assert.equal(count, 1);
});

test('the room for a second set of disks is that of the place with the least left', () => {
  const groups = [group, { ...group, name: 'small', freeBytes: 2 }];
  const pool = { group: 'xenvg', name: 'thin', sizeBytes: 9, freeBytes: 3, usedShare: 0 };
  const plan = (disks: readonly (readonly [string, number, string?])[]) =>
    planRoomBeside(
      disks.map(([name, sizeBytes, of], at) => ({
        ...{ uuid: `u${at}`, group: name, sizeBytes, pool: of },
      })),
      { groups, pools: [{ ...pool, isZeroing: true }], own: [], imageBytes: 1 },
      createLvm().errors,
    );
  assert.deepEqual(plan([]), { neededBytes: 0, freeBytes: 0, isEnough: true });
  const both = [
    ['xenvg', 2],
    ['small', 1],
    ['xenvg', 1],
  ] as const;
  assert.deepEqual(plan(both), { neededBytes: 3, freeBytes: 4, isEnough: true });
  const tooMuch = plan([...both, ['small', 2]]);
  assert.deepEqual(tooMuch, { neededBytes: 3, freeBytes: 2, isEnough: false });
  assert.equal(plan([['xenvg', 1, 'thin']]).freeBytes, 3);
  assert.deepEqual(plan([['xenvg', 1, 'nosuch']]).freeBytes, 0);
  assert.throws(() => plan([['nosuch', 1]]), { code: 'HOST_PREREQUISITE' });
});
