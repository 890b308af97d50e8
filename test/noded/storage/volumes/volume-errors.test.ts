import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { lvmErrors } from '../../../../noded/storage/drivers/lvm/lvm-errors.ts';
import type { OwnVolume } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import type { VolumeErrors } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { makeHint, zfsErrors } from '../../../../noded/storage/drivers/zfs/zfs-errors.ts';

const group = (name: string) => ({
  ...{ name, uuid: 'u', sizeBytes: 64 * MIB, freeBytes: 8 * MIB - 1, extentBytes: 4 * MIB },
});
const pool = (of: string, name: string) => ({
  ...{ group: of, name, sizeBytes: 64 * MIB, freeBytes: 7, usedShare: 0.967, isZeroing: true },
});
const owned = (...dependents: readonly string[]): OwnVolume =>
  ({ group: 'xenvg', name: 'a.disk', dependents }) as unknown as OwnVolume;
const FOREIGN = { group: 'xenvg', node: 'n2', name: 'b.disk' };

/** Refusals of both systems: the code, a part of the message, and a part of the hint. */
const ROWS: readonly (readonly [
  what: string,
  make: (errors: VolumeErrors) => Error,
  lvm: readonly [string, string, string],
  zfs: readonly [string, string, string],
])[] = [
  [
    'a missing group of none',
    (errors) => errors.noGroup('xenvg', []),
    ['HOST_PREREQUISITE', "no volume group 'xenvg'", 'It has: none. Create the group'],
    ['HOST_PREREQUISITE', "no ZFS dataset 'xenvg'", 'Its pools are: none. Create'],
  ],
  [
    'a missing group beside others',
    (errors) => errors.noGroup('xenvg', [group('a'), group('a/b'), group('c')]),
    ['HOST_PREREQUISITE', 'no volume group', 'It has: a, a/b, c. Create'],
    ['HOST_PREREQUISITE', 'no ZFS dataset', 'Its pools are: a, c. Create'],
  ],
  [
    'a size between two extents',
    (errors) => errors.oddSize(9 * MIB, group('g')),
    ['VALIDATION', 'extents of 4 MiB', 'Use 12 MiB instead of 9 MiB.'],
    ['VALIDATION', 'in whole MiB', 'Use 10 MiB.'],
  ],
  [
    'a size that is one byte too large',
    (errors) => errors.oddSize(8 * MIB + 1, group('g')),
    ['VALIDATION', 'extents of 4 MiB', 'Use 12 MiB instead of 9 MiB.'],
    ['VALIDATION', 'in whole MiB', 'Use 9 MiB.'],
  ],
  [
    'too little room',
    (errors) => errors.noRoom(9 * MIB + 1, group('g')),
    ['DISK_SPACE', "need 9 MiB, the volume group 'g' has 7 MiB free", 'vgextend g DEVICE'],
    ['DISK_SPACE', '9 MiB needed, 7 MiB free', 'zfs get quota g'],
  ],
  [
    'a missing pool of none',
    (errors) => errors.noPool({ group: 'g', pool: 'thin' }, []),
    ['HOST_PREREQUISITE', "no thin pool 'g/thin'", 'It has: none. Create the pool'],
    ['HOST_PREREQUISITE', "no ZFS dataset 'g'", 'Its pools are: none.'],
  ],
  [
    'a missing pool beside others',
    (errors) => errors.noPool({ group: 'g', pool: 'thin' }, [pool('g', 'a'), pool('h', 'b')]),
    ['HOST_PREREQUISITE', 'no thin pool', 'It has: g/a, h/b. Create the pool'],
    ['HOST_PREREQUISITE', 'no ZFS dataset', 'Its pools are: g, h.'],
  ],
  [
    'a full pool',
    (errors) => errors.fullPool(pool('g', 'a')),
    ['DISK_SPACE', "'g/a' is 96 % full", 'lvextend --size +10g g/a'],
    ['DISK_SPACE', 'it is 96 % full', 'zfs list -o space g'],
  ],
  [
    'volumes of another node',
    (errors) => errors.foreign(FOREIGN, { nodeName: 'n1' }),
    ['CONFLICT', 'of the node n2; this node is n1', 'lvchange --deltag gnt:node=n2 xenvg'],
    ['CONFLICT', 'of the node n2; this node is n1', 'If n2 is gone for good, run zfs inherit'],
  ],
  [
    'one dependent snapshot',
    (errors) => errors.dependents(owned('daily'), 'daily'),
    ['CONFLICT', '1 LVM snapshot(s) made by an administrator: daily', 'lvremove xenvg/daily'],
    ['CONFLICT', '1 ZFS snapshot(s) made by an administrator: daily', 'zfs destroy xenvg/daily'],
  ],
  [
    'two dependent snapshots',
    (errors) => errors.dependents(owned('daily', 'weekly'), 'daily'),
    ['CONFLICT', '2 LVM snapshot(s) made by an administrator: daily, …', 'lvremove xenvg/daily'],
    ['CONFLICT', '2 ZFS snapshot(s) made by an administrator: daily, …', 'destroy xenvg/daily'],
  ],
  [
    'a missing device',
    (errors) => errors.noDevice({ name: 'web1' }, 1, '/dev/x'),
    ['DISK_MISSING', "disk 1 of 'web1' is missing at /dev/x", 'vgchange --activate y'],
    ['DISK_MISSING', "disk 1 of 'web1' is missing at /dev/x", 'udevadm trigger'],
  ],
  [
    'a snapshot without a volume',
    (errors) => errors.noSnapshot('s1', 2),
    ['DISK_MISSING', "disk 2 of the snapshot 's1' has no volume", 'with lvs.'],
    ['DISK_MISSING', "disk 2 of the snapshot 's1' has no volume", 'with zfs list -t volume.'],
  ],
  [
    'a host that scans inside volumes',
    (errors) => errors.scanned(),
    ['HOST_PREREQUISITE', 'searches for volume groups', 'devices/scan_lvs=0'],
    ['HOST_PREREQUISITE', 'searches for volume groups', 'global_filter='],
  ],
];

for (const [what, make, lvm, zfs] of ROWS) {
  for (const [system, errors, [code, message, hint]] of [
    ['LVM', lvmErrors, lvm],
    ['ZFS', zfsErrors, zfs],
  ] as const) {
    test(`${system} refuses ${what} with a reason and a remedy`, () => {
      const error = make(errors) as ReturnType<VolumeErrors['scanned']>;
      assert.equal(error.code, code);
      assert.ok(error.message.includes(message), error.message);
      assert.ok(error.hint?.includes(hint) === true, `hint: ${error.hint}`);
    });
  }
}

test('a pool that does not zero is refused', () => {
  assert.equal(lvmErrors.leakyPool(pool('g', 'a')).hint, 'lvchange --zero y g/a');
  assert.equal(zfsErrors.leakyPool(pool('g', 'a')).code, 'HOST_PREREQUISITE');
});

test('the command for a missing dataset is that of a pool if it has no parent', () => {
  assert.equal(makeHint('tank'), 'zpool create tank DEVICE');
  assert.equal(makeHint('tank/vms'), 'zfs create -o mountpoint=none tank/vms');
});
