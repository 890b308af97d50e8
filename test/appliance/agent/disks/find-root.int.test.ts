import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { FileSystem } from '../../../../appliance/agent/disks/fstab.ts';
import { fileSystem, mountAndRun } from './support/mount-disks.ts';

const skip = !existsSync('/dev/loop3') && 'this host has no loop devices';
const directory = mkdtempSync(join(tmpdir(), 'gnt-find-root-'));
after(() => rmSync(directory, { recursive: true }));

/** Makes an ext4 file system with these empty files and directories. */
function disk(name: string, paths: readonly string[], more: Partial<FileSystem> = {}): FileSystem {
  const make = `rm -rf tree "$0"; mkdir tree; truncate -s 8M "$0"
    for path; do case $path in */) mkdir -p "tree/$path";; *) install -D /dev/null "tree/$path";; esac; done
    mke2fs -q -t ext4 -d tree "$0"`;
  execFileSync('bash', ['-euc', make, name, ...paths], { cwd: directory });
  return fileSystem(join(directory, name), more);
}

const boot = (): FileSystem => disk('boot', ['loader/', 'ostree/'], { label: 'boot' });
const OSTREE = ['ostree/repo/', 'ostree/deploy/coreos/deploy/abc.0/etc/os-release'];

test('an ostree image is refused with the contents of its partitions', { skip }, () => {
  const root = disk('root', OSTREE, { label: 'root' });
  const refusal =
    /^NOTHING_TO_MOUNT no file system .* looks like a root file system: .*\/boot \(ext4, label boot, boot files\), .*\/root \(ext4, label root, an ostree repository\) \nhint: .*--user-data/;
  assert.match(mountAndRun([boot(), root]), refusal);
  assert.match(
    mountAndRun([root]),
    /^NOTHING_TO_MOUNT .*\/root \(ext4, label root, an ostree repository\)/,
  );
});

test('a boot partition with os-release is not the root', { skip }, () => {
  const decoy = disk('decoy', ['etc/os-release'], { partType: '0xef' });
  assert.match(mountAndRun([decoy]), /^NOTHING_TO_MOUNT .*\/decoy \(ext4, boot partition\)/);
  const root = disk('plain', ['etc/']);
  assert.match(mountAndRun([decoy, root]), /^\S*\/plain \(ext4\) on \//);
});

test('the only file system is the root, also an empty file system', { skip }, () => {
  assert.match(mountAndRun([disk('empty', [])]), /^\S*\/empty \(ext4\) on \//);
  assert.match(
    mountAndRun([disk('empty', []), disk('data', ['files/'])]),
    /^NOTHING_TO_MOUNT .*\/empty \(ext4\), \S*\/data \(ext4\) \nhint: A root file system has \/etc/,
  );
});
