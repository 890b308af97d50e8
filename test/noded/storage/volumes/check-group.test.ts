import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { volumeGroupName } from '#shared/contract/disk-template.ts';
import {
  checkGroups,
  type PlacedDisk,
  refuseForeign,
  refuseScanned,
} from '../../../../noded/storage/drivers/volumes/check-group.ts';
import { lvmErrors } from '../../../../noded/storage/drivers/lvm/lvm-errors.ts';
import type { OwnVolume } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import { THICK } from './sample-volumes.ts';

const group = {
  name: 'xenvg',
  uuid: 'g',
  sizeBytes: 100 * MIB,
  freeBytes: 40 * MIB,
  extentBytes: 4 * MIB,
};
const disk = (uuid: string, mib: number) => ({
  uuid,
  sizeBytes: mib * MIB,
  group: 'xenvg',
  pool: undefined,
});
const volume = (of: string, mib: number): OwnVolume => ({
  ...{ ...THICK, groupUuid: 'g' },
  ...{ group: 'xenvg', name: of, sizeBytes: mib * MIB, tags: [], isActive: true, instance: 'i' },
  ...{ disk: of, state: { kind: 'disk' }, dirtyFromBytes: null },
  ...{ origin: '', node: null, dependents: [] },
});

const check = (disks: readonly PlacedDisk[], volumes: readonly OwnVolume[] = []): void =>
  checkGroups(disks, { groups: [group], volumes, pools: [] }, lvmErrors);

test('what a volume has is not asked for again', () => {
  check([disk('a', 20), disk('b', 20)]);
  assert.throws(() => check([disk('a', 20), disk('b', 24)]), {
    code: 'DISK_SPACE',
    message: "the disks need 44 MiB, the volume group 'xenvg' has 40 MiB free",
  });
  check([disk('a', 60)], [volume('a', 20)]);
  assert.throws(() => check([disk('a', 64)], [volume('a', 20)]), {
    code: 'DISK_SPACE',
  });
});

test('a group that is not there, and a size that is none of it, are told with what to do', () => {
  assert.throws(() => check([{ ...disk('a', 4), group: 'other' }]), {
    code: 'HOST_PREREQUISITE',
    hint: /It has: xenvg/,
  });
  assert.throws(() => check([disk('a', 18)]), {
    code: 'VALIDATION',
    hint: 'Use 20 MiB instead of 18 MiB.',
  });
});

test('the name of a group is no option, no path and no other folder', () => {
  assert.ok(volumeGroupName.safeParse('xen-vg_1.0+').success);
  for (const name of ['', '-f', '.', '..', 'a/b', 'a b', 'x'.repeat(128)])
    assert.equal(volumeGroupName.safeParse(name).success, false, name);
});

test('a group in which another node has volumes is refused by name, one of an own former name is not', () => {
  const volumes = [
    volume('a', 4),
    { ...volume('b', 4), node: 'node1' },
    { ...volume('c', 4), node: 'was1' },
    { ...volume('d', 4), node: 'node2', group: 'shared' },
  ];
  const here = { nodeName: 'node1', owns: (node: string) => node !== 'node2' };
  refuseForeign(new Set(['xenvg']), volumes, here, lvmErrors);
  assert.throws(() => refuseForeign(new Set(['xenvg', 'shared']), volumes, here, lvmErrors), {
    code: 'CONFLICT',
    message: /'shared' has volumes of the node node2; this node is node1/,
    hint: /lvchange --deltag gnt:node=node2 shared/,
  });
});

test('a host whose LVM looks into volumes is refused', () => {
  refuseScanned(false, lvmErrors);
  assert.throws(() => refuseScanned(true, lvmErrors), { hint: /scan_lvs=0/ });
});
