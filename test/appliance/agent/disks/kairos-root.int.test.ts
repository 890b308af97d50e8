import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { FileSystem } from '../../../../appliance/agent/disks/fstab.ts';
import { findKairos } from '../../../../appliance/agent/disks/kairos-root.ts';
import { fileSystem, mountAndRun } from './support/mount-disks.ts';

/** test/appliance/file-systems.long.test.ts covers it in a virtual machine. */
const WITHOUT_LOOPS = !existsSync('/dev/loop3') && 'this host has no loop devices';

const directory = mkdtempSync(join(tmpdir(), 'gnt-kairos-'));
after(() => rmSync(directory, { recursive: true }));
const shell = (script: string): string =>
  execFileSync('bash', ['-euc', script], { cwd: directory, encoding: 'utf8' });

test(
  'Kairos is recognized by its labels, and is refused without COS_STATE',
  { skip: WITHOUT_LOOPS },
  () => {
    const [state, oem, persistent, recovery] = ['STATE', 'OEM', 'PERSISTENT', 'RECOVERY'].map(
      (name) => labelled(`/dev/${name}`, `COS_${name}`),
    ) as [FileSystem, FileSystem, FileSystem, FileSystem]; // one for each name
    assert.equal(findKairos([labelled('/dev/a', 'root'), labelled('/dev/b', null)]), null);
    assert.deepEqual(findKairos([recovery, oem, state, persistent]), { state, oem, persistent });
    assert.deepEqual(findKairos([state]), { state, oem: null, persistent: null });
    for (const without of [[oem], [recovery], [oem, persistent]])
      assert.throws(() => findKairos(without), {
        code: 'NOTHING_TO_MOUNT',
        message: /has no COS_STATE/,
      });
  },
);

const labelled = (path: string, label: string | null): FileSystem => fileSystem(path, { label });
const mount = (labels: readonly string[], script?: string): string =>
  mountAndRun(
    labels.map((label) => labelled(join(directory, label), label)),
    script,
  );

test(
  'the active system of Kairos is mounted with /oem and /usr/local, and writes reach its image file',
  { skip: WITHOUT_LOOPS },
  () => {
    shell(`mkdir -p active/etc active/usr/local state/cOS
    echo ID=kairos >active/etc/os-release; truncate -s 8M state/cOS/active.img
    mke2fs -q -t ext2 -d active state/cOS/active.img
    truncate -s 16M COS_STATE && mke2fs -q -t ext4 -L COS_STATE -d state COS_STATE
    for name in COS_OEM COS_PERSISTENT; do truncate -s 4M $name; mke2fs -q -t ext4 -L $name $name; done`);
    const said = mount(
      ['COS_STATE', 'COS_OEM', 'COS_PERSISTENT'],
      'cd /run/gnt/target; cat etc/os-release; echo 1 >etc/new; echo 2 >oem/new; echo 3 >usr/local/new; cd /; umount -R /run/gnt/target',
    );
    assert.match(
      said,
      /^Kairos: active system in .*COS_STATE mounted on \/, .*COS_OEM on \/oem, .* on \/usr\/local/,
    );
    assert.match(said, /changes in \/oem and \/usr\/local persist/);
    assert.match(said, /^ID=kairos$/m);
    shell('debugfs -R "dump cOS/active.img active.out" COS_STATE 2>/dev/null');
    const read = (image: string, path: string): string =>
      shell(`debugfs -R 'cat ${path}' ${image} 2>/dev/null`);
    assert.equal(read('active.out', '/etc/new'), '1\n');
    assert.equal(read('COS_OEM', '/new'), '2\n');
    assert.equal(read('COS_PERSISTENT', '/new'), '3\n');
  },
);

test(
  'an active system that is not a file or not a writable file system is refused with the reason',
  { skip: WITHOUT_LOOPS },
  () => {
    shell('rm -f COS_*; rm -rf bad; mkdir -p bad/cOS; ln -s /etc/hostname bad/cOS/active.img');
    const make = 'truncate -s 8M COS_STATE; mke2fs -q -F -t ext4 -L COS_STATE -d bad COS_STATE';
    shell(make);
    assert.match(mount(['COS_STATE']), /^NOTHING_TO_MOUNT Kairos: .*no system is installed/);
    shell(`rm bad/cOS/active.img; echo hsqs >bad/cOS/active.img; ${make}`);
    assert.match(
      mount(['COS_STATE']),
      /^NOTHING_TO_MOUNT Kairos: .*is of type unknown, which is not writable/,
    );
  },
);
