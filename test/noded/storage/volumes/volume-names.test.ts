import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findOwn,
  instanceTag,
  nodeTag,
  volumeName,
} from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import { THICK } from './sample-volumes.ts';

const instance = '00000001-0000-4000-8000-000000000000';
const groupUuid = 'Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4';
const own = {
  ...{ ...THICK, group: 'xenvg', groupUuid, sizeBytes: 8, isActive: true, origin: '' },
  name: volumeName('0000000a-0000-4000-8000-000000000000', { kind: 'disk' }),
  tags: ['backup', instanceTag(instance, groupUuid)],
};

test("a volume of a cloned group, which has names and tags of ours, is somebody else's", () => {
  const cloned = { ...own, group: 'xenvg1', groupUuid: '2Kx8Pd-h1Lq-9PYU-8vXn-VvbQ-0pbr-Xh9t3a' };
  const found = findOwn([cloned, own]);
  assert.deepEqual(
    found.map((one) => [one.group, one.instance]),
    [['xenvg', instance]],
  );
});

test('a volume says which node made it, and which snapshots it has', () => {
  const snapshot = { ...own, name: 'before-upgrade', tags: [], origin: own.name };
  const cloned = { ...snapshot, groupUuid: '2Kx8Pd-h1Lq-9PYU-8vXn-VvbQ-0pbr-Xh9t3a' };
  const tagged = { ...own, tags: [...own.tags, nodeTag('node1.example.com')] };
  const [found] = findOwn([snapshot, tagged, cloned]);
  assert.equal(found?.node, 'node1.example.com');
  assert.deepEqual(found.dependents, ['before-upgrade']);
  assert.deepEqual([findOwn([own])[0]?.node, findOwn([own])[0]?.dependents], [null, []]);
});
