import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainHalt } from '../../../../noded/instances/machines/explain-halt.ts';
import { instanceRecord } from '../../support/records.ts';

const full = { reason: 'disk-full' } as const;

test('who stands still since its thin pool is full is told which one, and how it gets room', () => {
  const { disks, ...record } = instanceRecord({ name: 'web1' });
  const thin = disks.map((disk) => ({ ...disk, vg: 'xenvg', pool: 'pool' }));
  assert.ok(thin.length > 0);
  const told = explainHalt({ ...record, disks: thin }, full);
  assert.match(
    told,
    /thin pool xenvg\/pool is full on .*resumes by itself.*lvextend .*xenvg\/pool/,
  );
  assert.doesNotMatch(told, /file system/);
  assert.match(explainHalt({ ...record, disks }, full), /file system of the disks is full/);
  assert.match(explainHalt({ ...record, disks }, { reason: 'disk-error' }), /check its storage/);
  const inZfs = disks.map((disk) => ({ ...disk, dataset: 'tank/vms' }));
  assert.match(
    explainHalt({ ...record, disks: inZfs }, full),
    /ZFS dataset tank\/vms is full on .*zpool add/,
  );
});
