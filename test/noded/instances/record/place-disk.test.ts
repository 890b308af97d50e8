import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceRecord as recordSchema } from '#shared/contract/instance.ts';
import { GIB } from '#shared/units/bytes.ts';
import { changeDisks } from '../../../../noded/instances/record/change-parts.ts';
import { placeOf } from '../../../../noded/instances/record/place-disk.ts';
import { instanceRecord } from '../../support/records.ts';

test('only a disk of the template plain is in a volume group, of zfs in a dataset, and needs one', () => {
  const places = { vgName: 'xenvg', zfsPool: 'tank/vms' };
  assert.deepEqual(placeOf('file', places), {});
  assert.deepEqual(placeOf('plain', places), { vg: 'xenvg' });
  assert.throws(() => placeOf('plain', { zfsPool: 'tank' }), {
    code: 'NOT_SUPPORTED',
    hint: /--vg-name/,
  });
  assert.deepEqual(placeOf('zfs', places), { dataset: 'tank/vms' });
  assert.throws(() => placeOf('zfs', { vgName: 'xenvg' }), { hint: /--zfs-pool/ });
  assert.throws(() => instanceRecord({ diskTemplate: 'plain' }), { code: 'NOT_SUPPORTED' });
});

test('a disk that is added is in the group of the others, whatever the cluster names by now', () => {
  const record = instanceRecord({}, { diskTemplate: 'plain' });
  const plain = { ...record, disks: record.disks.map((disk) => ({ ...disk, vg: 'xenvg' })) };
  recordSchema.parse(plain);
  const added = { action: 'add', disk: { sizeBytes: GIB } } as const;
  const newUuid = (): string => '00000042-0000-4000-8000-000000000000';
  const places = (vgName: string | undefined) =>
    changeDisks(plain, [added], { newUuid, vgName }).map(({ vg }) => vg);
  assert.deepEqual(places('other'), ['xenvg', 'xenvg']);
  assert.deepEqual(places(undefined), ['xenvg', 'xenvg']);
});
