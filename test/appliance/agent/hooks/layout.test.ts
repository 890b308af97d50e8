import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatPartition } from '../../../../appliance/agent/hooks/layout.ts';

const partition = { size: 0, filesystem: 'ext4', bootable: false };

test("a partition's size, kind and name are sfdisk's words; a name is for a GPT, no size is all that there is", () => {
  assert.equal(formatPartition(partition, 'gpt'), 'type=linux');
  assert.equal(
    formatPartition({ ...partition, size: 16, pLabel: 'data' }, 'gpt'),
    'size=16MiB, type=linux, name="data"',
  );
  assert.equal(formatPartition({ ...partition, pLabel: 'data' }, 'dos'), 'type=linux');
  assert.equal(formatPartition({ ...partition, filesystem: 'swap' }, 'gpt'), 'type=swap');
  assert.equal(formatPartition({ ...partition, bootable: true }, 'gpt'), 'type=uefi');
});
