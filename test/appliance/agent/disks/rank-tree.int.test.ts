import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { rankTree, readFstab } from '../../../../appliance/agent/disks/find-root.ts';
import { TargetRoot } from '../../../../appliance/agent/disks/target-root.ts';

let tree = '';
beforeEach(() => (tree = mkdtempSync(join(tmpdir(), 'gnt-rank-'))));
afterEach(() => void execFileSync('rm', ['-r', tree]));

test('a link to /etc is resolved in the tree', () => {
  symlinkSync('/etc', join(tree, 'etc'));
  const decoy = rankTree(tree);
  rmSync(join(tree, 'etc'));
  mkdirSync(join(tree, 'etc'));
  writeFileSync(join(tree, 'etc/os-release'), 'ID=real\n');
  assert.equal(rankTree(tree), 0);
  assert.notEqual(decoy, 0);
});

test('a tree with links inside itself is a root, and a tree without a mark is not', () => {
  assert.equal(rankTree(tree), null);
  mkdirSync(join(tree, 'system/etc'), { recursive: true });
  writeFileSync(join(tree, 'system/etc/os-release'), 'ID=real\n');
  symlinkSync('/system/etc', join(tree, 'etc'));
  assert.equal(rankTree(tree), 0);
});

test('links and names that are too long are errors of less than 400 characters', () => {
  const long = 'x'.repeat(300);
  symlinkSync(long, join(tree, 'etc'));
  assert.notEqual(rankTree(tree), 0);
  symlinkSync('loop/'.repeat(800), join(tree, 'loop'));
  const tooMany = 'a/'.repeat(100_000);
  for (const path of [long, `etc/${long}`, `loop/${tooMany}`, tooMany]) {
    const open = (): unknown =>
      new TargetRoot(tree).openDirectory(path.split('/'), { create: true });
    assert.throws(open, (error) => isAppError(error) && error.message.length < 400);
  }
});

test('a file system with a damaged /etc is an error with a hint to fsck', () => {
  const [image, mounted] = [join(tree, 'image'), join(tree, 'mounted')];
  mkdirSync(join(tree, 'files/etc'), { recursive: true });
  mkdirSync(mounted);
  writeFileSync(join(tree, 'files/etc/fstab'), '/dev/vda2 /var ext4 defaults 0 0\n');
  execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', join(tree, 'files'), image, '4M']);
  const told = execFileSync('debugfs', ['-R', 'imap /etc', image], { stdio: 'pipe' }).toString();
  const [, block = '', offset = ''] = /block (\d+), offset 0x([0-9a-f]+)/.exec(told) ?? [];
  const file = openSync(image, 'r+');
  writeSync(file, Buffer.alloc(64, 0xff), 0, 64, Number(block) * 1024 + parseInt(offset, 16) + 64);
  closeSync(file);
  execFileSync('mount', ['-o', 'loop,ro', image, mounted]);
  try {
    const isDamage = (error: unknown): boolean =>
      isAppError(error, 'COMMAND_FAILED') && /fsck/.test(error.hint ?? '');
    assert.throws(() => rankTree(mounted), isDamage);
    assert.throws(() => readFstab(new TargetRoot(mounted)), isDamage);
  } finally {
    execFileSync('umount', [mounted]);
  }
});
