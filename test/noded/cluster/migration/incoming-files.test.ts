import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireItsFiles } from '../../../../noded/cluster/migration/incoming-files.ts';

const SIZE = 1 << 30;
const instance = {
  name: 'web1',
  instanceId: '3f0c8c6e-0000-4000-8000-000000000001',
  disks: [{ uuid: '3f0c8c6e-0000-4000-8000-000000000002', name: null, sizeBytes: SIZE }],
};
const variables = `efi-variables-${instance.instanceId}.fd`;
const disk = { name: 'disk0.raw', sizeBytes: SIZE };

test('an instance arrives with all of its disks, and with no more variables than firmware can have', () => {
  requireItsFiles(instance, [disk]);
  requireItsFiles(instance, [disk, { name: variables, sizeBytes: 8 << 20 }]);
  for (const wrong of [
    [],
    [disk, disk],
    [{ ...disk, sizeBytes: SIZE - 1 }],
    [disk, { name: variables, sizeBytes: (8 << 20) + 1 }],
    [disk, { name: 'efi-variables-other.fd', sizeBytes: 1 }],
    [disk, { name: variables, sizeBytes: 1 }, { name: variables, sizeBytes: 1 }],
  ])
    assert.throws(() => requireItsFiles(instance, wrong), { code: 'VALIDATION' });
});
