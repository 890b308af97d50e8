import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Candidate,
  chooseRoot,
  describeOther,
} from '../../../../appliance/agent/disks/choose-root.ts';
import type { FileSystem } from '../../../../appliance/agent/disks/fstab.ts';
import { fileSystem } from './support/mount-disks.ts';

const ESP = { type: 'vfat', partType: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b' };
const at = (
  found: FileSystem,
  rank: number | null,
  foreign: Candidate['foreign'] = null,
): Candidate => ({ fileSystem: found, subvolume: null, rank, foreign });
const [first, second] = [fileSystem('/dev/vdb1'), fileSystem('/dev/vdb2', { label: 'data' })];

test('the root has the best mark, and is the first of two equal roots', () => {
  assert.equal(chooseRoot([at(first, 3), at(second, 0)], [first, second]).fileSystem, second);
  assert.equal(chooseRoot([at(first, 0), at(second, 0)], [first, second]).fileSystem, first);
  assert.equal(chooseRoot([at(first, null), at(second, 3)], [first, second]).fileSystem, second);
});

test('the log warns of a root that is as good as the chosen root, and names a worse root', () => {
  assert.equal(
    describeOther(at(second, 1), at(first, 0)),
    '/dev/vdb2 (ext4) also looks like a root file system; using /dev/vdb1 (ext4), the better match',
  );
  assert.match(
    describeOther(at(second, 0), at(first, 0)),
    /^warning: \/dev\/vdb2 .* as much as \/dev\/vdb1 \(ext4\); using \/dev\/vdb1 \(ext4\), the first\./,
  );
});

test('a file system without a mark is the root only when there is no other', () => {
  const swap = fileSystem('/dev/vdb3', { type: 'swap' });
  assert.equal(chooseRoot([at(first, null)], [first, swap]).fileSystem, first);
  for (const other of [second, fileSystem('/dev/vdb4', { type: 'squashfs' })])
    assert.throws(() => chooseRoot([at(first, null)], [first, other]), {
      code: 'NOTHING_TO_MOUNT',
      message: /looks like a root file system: \/dev\/vdb1 \(ext4\), \/dev\/vdb/,
    });
});

test('boot files beside an encrypted root are refused as a root, and the hint names the encryption', () => {
  const root = fileSystem('/dev/vdb5', { type: 'crypto_LUKS' });
  assert.throws(() => chooseRoot([at(first, null, 'boot files')], [first, root]), {
    message: /\/dev\/vdb1 \(ext4, boot files\), \/dev\/vdb5 \(crypto_LUKS\)$/,
    hint: /encrypted/,
  });
});

test('neither a lone boot partition nor a lone ostree repository is a root', () => {
  const esp = fileSystem('/dev/vdb1', ESP);
  assert.throws(() => chooseRoot([], [esp]), { message: /\/dev\/vdb1 \(vfat, boot partition\)$/ });
  assert.throws(() => chooseRoot([at(second, null, 'an ostree repository')], [second]), {
    message: /\/dev\/vdb2 \(ext4, label data, an ostree repository\)$/,
    hint: /--user-data/,
  });
});
