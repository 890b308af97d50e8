import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import type { OwnVolume } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import { examineZfs, type KnownZfs } from '../../../../noded/operations/doctor/examine-zfs.ts';

const tank = {
  name: 'tank',
  uuid: '1',
  sizeBytes: 10 * GIB,
  freeBytes: 6 * GIB,
  extentBytes: 2 ** 20,
};
const vms = { ...tank, name: 'tank/vms', uuid: '2', sizeBytes: 8 * GIB };
const known = (more: Partial<KnownZfs> = {}): KnownZfs => ({
  ...{ groups: [tank, vms], own: [], pools: [], problem: null, zfsPool: 'tank/vms', ...more },
});
const volume = (sizeBytes: number) => ({ group: 'tank/vms', sizeBytes }) as OwnVolume;

test('what pools there are is told, and that the one for disks is not on this node', () => {
  const first = (more: Partial<KnownZfs>) => examineZfs(known(more), [])[0];
  assert.equal(first({})?.message, 'ZFS dataset tank/vms (6.0 GiB of 8.0 GiB free)');
  assert.match(
    first({ zfsPool: undefined })?.message ?? '',
    /no ZFS pool .* this node has: tank \(6\.0 GiB of 10\.0 GiB free\)$/,
  );
  const missing = first({ zfsPool: 'tank/other' });
  assert.equal(missing?.level, 'warning');
  assert.match(missing.hint ?? '', /^zfs create .*tank\/other/);
  assert.match(first({ groups: null })?.hint ?? '', /apt-get install zfsutils-linux/);
});

test('a dataset that is full, or promised twice, is told with what is in it', () => {
  const room = (freeBytes: number, ...own: readonly OwnVolume[]) =>
    examineZfs(known({ groups: [tank, { ...vms, freeBytes }], own }), []).find(
      ({ check }) => check === 'zfs-room',
    );
  assert.equal(room(6 * GIB, volume(GIB))?.level, 'ok');
  assert.equal(room(6 * GIB, volume(GIB), volume(8 * GIB))?.level, 'warning');
  assert.match(room(6 * GIB, volume(9 * GIB))?.message ?? '', /25 % full, its 1 volume\(s\)/);
  assert.equal(room(1.5 * GIB)?.level, 'warning');
  assert.equal(room(0.2 * GIB)?.level, 'error');
});

test('a dataset that disks are in, and that is gone, is an error with their names', () => {
  const disk = { uuid: 'u', name: null, sizeBytes: GIB };
  const instances = [
    { name: 'web1', disks: [{ ...disk, dataset: 'gone/vms' }] },
    { name: 'db1', disks: [{ ...disk, dataset: 'tank/vms' }, disk] },
  ];
  const found = examineZfs(known(), instances).filter(({ level }) => level === 'error');
  assert.deepEqual(
    found.map(({ message }) => message),
    ['ZFS dataset gone/vms is missing on this node but holds disks of web1'],
  );
});
