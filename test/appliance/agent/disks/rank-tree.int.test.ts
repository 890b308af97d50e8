import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { rankTree } from '../../../../appliance/agent/disks/mount.ts';

let tree = '';
beforeEach(() => (tree = mkdtempSync(join(tmpdir(), 'gnt-rank-'))));
afterEach(() => rmSync(tree, { recursive: true }));

test('a link to /etc does not make a tree a root: it is resolved in the tree', () => {
  symlinkSync('/etc', join(tree, 'etc'));
  const decoy = rankTree(tree);
  rmSync(join(tree, 'etc'));
  mkdirSync(join(tree, 'etc'));
  writeFileSync(join(tree, 'etc/os-release'), 'ID=real\n');
  assert.equal(rankTree(tree), 0);
  assert.notEqual(decoy, 0);
});

test('a tree with links inside itself is a root, and one without any mark is none', () => {
  assert.equal(rankTree(tree), null);
  mkdirSync(join(tree, 'system/etc'), { recursive: true });
  writeFileSync(join(tree, 'system/etc/os-release'), 'ID=real\n');
  symlinkSync('/system/etc', join(tree, 'etc'));
  assert.equal(rankTree(tree), 0);
});
