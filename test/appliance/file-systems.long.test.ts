import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstallEvent } from '#shared/contract/install-event.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { type ApplianceRun, bootAppliance } from './support/boot-appliance.ts';
import { buildTestAppliance } from './support/build-test-appliance.ts';

const MIB = 1024 * 1024;
/** MiB. mkfs.xfs needs at least 300; the kernel resizes btrfs to 256 or more. */
const SIZES = { xfs: { image: 306, disk: 448 }, btrfs: { image: 130, disk: 288 }, lvm: 160 };
let directory = '';
let applianceDir = '';

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-file-systems-test-'));
  applianceDir = await buildTestAppliance(directory);
  shell(`truncate -s ${SIZES.xfs.disk}M disk-xfs; truncate -s ${SIZES.btrfs.disk}M disk-btrfs; truncate -s ${SIZES.lvm}M disk-lvm
    truncate -s ${SIZES.xfs.image - 2}M part-xfs && mkfs.xfs -q -L data part-xfs
    truncate -s ${SIZES.btrfs.image - 2}M part-btrfs && mkfs.btrfs -q -L system part-btrfs`);
});
after(() => rmSync(directory, { recursive: true }));

function shell(command: string): string {
  return execFileSync('bash', ['-euc', command], {
    cwd: directory,
    encoding: 'utf8',
    maxBuffer: 64 * MIB,
  });
}

/** A qcow2 image with a GPT and one partition, with the file system of `part-TYPE`. */
function makeImage(type: 'xfs' | 'btrfs'): string {
  shell(`truncate -s ${SIZES[type].image}M ${type}.raw
    printf 'label: gpt\\nstart=2048, size=${(SIZES[type].image - 2) * 2048}\\n' | sfdisk -q ${type}.raw
    dd if=part-${type} of=${type}.raw bs=1M seek=1 conv=notrunc,sparse status=none
    qemu-img convert -O qcow2 ${type}.raw ${type}.qcow2; rm ${type}.raw part-${type}`);
  return join(directory, `${type}.qcow2`);
}

/** A package with one file per path, each saying `<word> in <path>`. */
function makePackage(word: string, paths: readonly string[]): Buffer {
  const files = paths.map(
    (path) => `mkdir -p package$(dirname ${path}); echo ${word} in ${path} >package${path}`,
  );
  shell(`rm -rf package; ${files.join('\n')}\ntar -C package -czf package.tgz .`);
  return readFileSync(join(directory, 'package.tgz'));
}

function makeDefinition(script: string): Buffer {
  shell(
    `rm -rf os; mkdir -p os/untrusted; cat >os/untrusted/create <<'END'\n#!/bin/bash\nset -eu\n${script}\nEND
    chmod 755 os/untrusted/create; tar -C os -cf os.tar .`,
  );
  return readFileSync(join(directory, 'os.tar'));
}

/** Installs `image` on the first of these disks, runs the script, then unpacks the package. */
async function install(
  disks: readonly string[],
  image: string,
  script: string,
  osPackage: Buffer,
): Promise<ApplianceRun> {
  const files = disks.map((name, index) => ({
    path: join(directory, name),
    serial: `disk${index}`,
  }));
  const plan: InstallPlan = {
    version: 1,
    installId: '11111111-1111-1111-1111-111111111111',
    instance: 'test.example.com',
    disks: files.map(({ path, serial }) => ({ serial, sizeBytes: statSync(path).size })),
    image: { serial: 'image', fileSizeBytes: statSync(image).size, grow: true },
    scripts: { script: 'create', path: 'untrusted/create', environment: {} },
    personalization: { format: 'tar.gz' },
  };
  const run = await bootAppliance(
    applianceDir,
    [...files, { path: image, serial: 'image', readOnly: true }],
    { plan, osParameters: {}, definitionTar: makeDefinition(script), osPackage },
  );
  const last = run.events.at(-1);
  assert.deepEqual(last?.type === 'result' && last.outcome, { status: 'success' }, run.console);
  return run;
}

function summaryOf(events: readonly InstallEvent[], stage: string): string {
  const found = events.find((event) => event.type === 'stage-finished' && event.stage === stage);
  return found?.type === 'stage-finished' ? (found.summary ?? '') : '';
}

function printedBy(run: ApplianceRun): string[] {
  return run.events.flatMap((event) =>
    event.type === 'log' && event.stream === 'stdout' ? [event.line] : [],
  );
}

test('an xfs image grows, and a package lands on a root in LVM, on the xfs below it and on the volume below that', async () => {
  const run = await install(
    ['disk-xfs', 'disk-lvm'],
    makeImage('xfs'),
    `pvcreate -q /dev/disk/by-id/virtio-disk1 >/dev/null; vgcreate -q vg-0 /dev/disk/by-id/virtio-disk1 >/dev/null
lvcreate -q -n root -L 64M vg-0 >/dev/null; lvcreate -q -n deep -L 32M vg-0 >/dev/null
mke2fs -q -t ext4 /dev/vg-0/root; mke2fs -q -t ext4 -L deep /dev/vg-0/deep
mkdir -p /mnt/root; mount /dev/vg-0/root /mnt/root
mkdir -p /mnt/root/etc; echo ID=test >/mnt/root/etc/os-release
printf '%s\\n' 'LABEL=deep /srv/deep ext4 defaults 0 2' '/dev/mapper/vg--0-root / ext4 defaults 0 1' 'LABEL=data /srv xfs defaults 0 2' 'tmpfs /tmp tmpfs defaults 0 0' >/mnt/root/etc/fstab
umount /mnt/root`,
    makePackage('first', ['/etc/mark', '/srv/mark', '/srv/deep/mark']),
  );
  assert.match(summaryOf(run.events, 'grow'), /xfs grown$/);
  assert.match(
    summaryOf(run.events, 'mount'),
    /^\/dev\/mapper\/vg--0-root \(ext4\) on \/, \/dev\/vdb1 on \/srv, \/dev\/mapper\/vg--0-deep on \/srv\/deep$/,
  );
  shell(
    'dd if=disk-xfs of=part bs=1M skip=1 conv=sparse status=none; xfs_repair -nf part 2>/dev/null',
  );
  const blocks = /dblocks = (\d+)[\s\S]*blocksize = (\d+)/.exec(
    shell(`xfs_db -f -c 'sb 0' -c 'print dblocks blocksize' part; rm part`),
  );
  const size = Number(blocks?.[1]) * Number(blocks?.[2]);
  assert.ok(size > (SIZES.xfs.disk - 4) * MIB, `xfs has ${size} bytes`);
});

test('a btrfs image grows, and a package lands in its root subvolume, in the one for /home and on a volume below', async () => {
  const run = await install(
    ['disk-btrfs', 'disk-xfs', 'disk-lvm'],
    makeImage('btrfs'),
    `mkdir -p /mnt/a /mnt/b; vgchange -q -ay vg-0 >/dev/null; vgmknodes
mount /dev/vg-0/root /mnt/a; mount /dev/disk/by-id/virtio-disk1-part1 /mnt/a/srv; mount /dev/vg-0/deep /mnt/a/srv/deep
cat /mnt/a/etc/mark /mnt/a/srv/mark /mnt/a/srv/deep/mark
umount -R /mnt/a; mount /dev/vg-0/root /mnt/a; rm /mnt/a/etc/os-release; umount /mnt/a
mount /dev/disk/by-id/virtio-disk0-part1 /mnt/b
btrfs -q subvolume create /mnt/b/@; btrfs -q subvolume create /mnt/b/@home
mkdir /mnt/b/@/etc; echo ID=test >/mnt/b/@/etc/os-release
printf '%s\\n' 'LABEL=system / btrfs subvol=@ 0 0' 'LABEL=system /home btrfs subvol=@home,compress=no 0 0' '/dev/vg-0/deep /home/deep ext4 defaults 0 2' >/mnt/b/@/etc/fstab
umount /mnt/b`,
    makePackage('second', ['/etc/mark', '/home/mark', '/home/deep/mark']),
  );
  assert.deepEqual(printedBy(run), [
    'first in /etc/mark',
    'first in /srv/mark',
    'first in /srv/deep/mark',
  ]);
  assert.match(summaryOf(run.events, 'grow'), /btrfs grown$/);
  assert.match(
    summaryOf(run.events, 'mount'),
    /^\/dev\/vdb1 \(btrfs, subvolume @\) on \/, \/dev\/vdb1 on \/home, \/dev\/mapper\/vg--0-deep on \/home\/deep$/,
  );
  shell(
    'dd if=disk-btrfs of=part bs=1M skip=1 conv=sparse status=none; btrfs check -q part 2>/dev/null',
  );
  const total = /total_bytes\s+(\d+)/.exec(shell('btrfs inspect-internal dump-super part'))?.[1];
  assert.ok(Number(total) > (SIZES.btrfs.disk - 4) * MIB, `btrfs has ${total} bytes`);
  // The content of each subvolume, read without the kernel.
  shell('mkdir restored; btrfs restore -S part restored >/dev/null 2>&1');
  assert.equal(shell('cat restored/@/etc/mark'), 'second in /etc/mark\n');
  assert.equal(shell('cat restored/@home/mark'), 'second in /home/mark\n');
  assert.equal(shell(`grep -ac 'second in /home/deep/mark' disk-lvm`), '1\n');
});

test("on a Kairos image a package lands in the active system's file, and on /oem and /usr/local where they are", async () => {
  // MiB: start and length of each of the three partitions.
  const parts = { COS_OEM: [1, 8], COS_STATE: [9, 40], COS_PERSISTENT: [49, 14] } as const;
  const at = Object.values(parts).map(([start, size]) => `start=${start}MiB, size=${size}MiB`);
  shell(`mkdir -p active/etc active/usr/local state/cOS; echo ID=kairos >active/etc/os-release
    truncate -s 16M state/cOS/active.img; mke2fs -q -t ext2 -d active state/cOS/active.img
    truncate -s 64M kairos.raw; printf 'label: gpt\\n${at.join('\\n')}\\n' | sfdisk -q kairos.raw; truncate -s 96M disk-kairos`);
  for (const [label, [start, size]] of Object.entries(parts))
    shell(`truncate -s ${size}M part; mke2fs -q -F -t ext4 -L ${label} ${label === 'COS_STATE' ? '-d state' : ''} part
      dd if=part of=kairos.raw bs=1M seek=${start} conv=notrunc,sparse status=none; rm part`);
  const paths = ['/etc/pkg', '/oem/pkg', '/usr/local/pkg'];
  const osPackage = makePackage('word', paths);
  const image = join(directory, 'kairos.raw');
  const run = await install(['disk-kairos'], image, 'true', osPackage);
  assert.match(
    summaryOf(run.events, 'mount'),
    /^Kairos: active system in .* on \/oem, .* on \/usr\/local$/,
  );
  const read = (label: keyof typeof parts, path: string): string => {
    const [start, size] = parts[label];
    shell(
      `dd if=disk-kairos of=read bs=1M skip=${start} count=${label === 'COS_PERSISTENT' ? 47 : size} status=none; e2fsck -fn read >/dev/null 2>&1`,
    );
    if (label !== 'COS_STATE') return shell(`debugfs -R 'cat ${path}' read 2>/dev/null`);
    shell(
      'debugfs -R "dump cOS/active.img active.out" read 2>/dev/null; e2fsck -fn active.out >/dev/null 2>&1',
    );
    return shell(`debugfs -R 'cat ${path}' active.out 2>/dev/null`);
  };
  assert.equal(read('COS_STATE', '/etc/pkg'), 'word in /etc/pkg\n');
  assert.equal(read('COS_OEM', '/pkg'), 'word in /oem/pkg\n');
  assert.equal(read('COS_PERSISTENT', '/pkg'), 'word in /usr/local/pkg\n');
});
