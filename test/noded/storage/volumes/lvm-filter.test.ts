import assert from 'node:assert/strict';
import { test } from 'node:test';
import { looksAt } from '../../../../noded/storage/drivers/zfs/lvm-filter.ts';

const NAMES = ['/dev/zd0', '/dev/zvol/pool/disk', '/dev/pool/disk'];
const looks = (...patterns: readonly string[]): boolean =>
  looksAt(`filter=["a|.*|"]\nglobal_filter=${JSON.stringify(patterns)}\n`, NAMES);

test('LVM looks at devices of ZFS, unless a filter keeps it out by all of their names', () => {
  assert.equal(looks('a|.*|'), true, 'what it does by default');
  assert.equal(looks('r|^/dev/zd|'), false);
  assert.equal(looks('r|/dev/zd.*|', 'r|/dev/rbd.*|'), false, 'what Proxmox VE sets');
  assert.equal(looks('r|^/dev/zd|', 'a|.*|'), true, 'by another name of the same device');
  assert.equal(looks('a|^/dev/sda|', 'r|.*|'), false);
  assert.equal(looks('r/(.*/'), true, 'what cannot be read keeps nothing out');
  assert.equal(looksAt('global_filter=["a|.*|"]\nfilter=["r|.*|"]', NAMES), false);
  assert.equal(looksAt('', NAMES), true);
});
