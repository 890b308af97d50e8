import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatPartition } from '../../../../appliance/agent/hooks/layout.ts';

const partition = { size: 0, filesystem: 'ext4', bootable: false };

test('a partition is rendered for sfdisk with size, type, and a name on GPT only', () => {
  assert.equal(formatPartition(partition, 'gpt'), 'type=linux');
  assert.equal(
    formatPartition({ ...partition, size: 16, pLabel: 'data' }, 'gpt'),
    'size=16MiB, type=linux, name="data"',
  );
  assert.equal(formatPartition({ ...partition, pLabel: 'data' }, 'dos'), 'type=linux');
  assert.equal(formatPartition({ ...partition, filesystem: 'swap' }, 'gpt'), 'type=swap');
  assert.equal(formatPartition({ ...partition, bootable: true }, 'gpt'), 'type=uefi');
});
