import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type FileSystem,
  findRootSource,
  matchFstabSource,
  MAX_FSTAB_ENTRIES,
  parseFstab,
} from '../../../../appliance/agent/disks/fstab.ts';
import { findMounts } from '../../../../appliance/agent/disks/unmount.ts';
import {
  createScriptEnvironment,
  listHiddenValues,
} from '../../../../appliance/agent/scripts/environment.ts';

test('reads the mounts of disks from an fstab, parents before children', () => {
  const entries = parseFstab(`# comment
UUID=1 / ext4 defaults 0 1
LABEL=home\\040dir /home/my\\040files ext4 defaults 0 2
/dev/vda1 /boot/efi vfat umask=0077 0 1
/dev/vda2 /boot ext4 defaults 0 2
tmpfs /tmp tmpfs defaults 0 0
server:/x /net nfs defaults 0 0
UUID=9 none swap sw 0 0
UUID=1 /srv btrfs subvol=@srv,noatime 0 0
broken
`);
  assert.deepEqual(
    entries.map((entry) => entry.mountPoint),
    ['/boot', '/srv', '/home/my files', '/boot/efi'],
  );
  assert.equal(entries[2]?.source, 'LABEL=home dir');
  assert.deepEqual(entries[1]?.options, ['subvol=@srv', 'noatime']);
});

test('normalizes mount points, and leaves out the root and noauto mounts', () => {
  const entries = parseFstab(`LABEL=a /. ext4 defaults 0 0
LABEL=b /x/.. ext4 defaults 0 0
LABEL=c //srv/./data/ ext4 defaults 0 0
LABEL=d /usb ext4 noauto,user 0 0
LABEL=e /../../opt ext4 nofail 0 0
`);
  assert.deepEqual(
    entries.map((entry) => entry.mountPoint),
    ['/opt', '/srv/data'],
  );
});

test('reads a bounded number of mounts', () => {
  const text = Array.from({ length: 3000 }, (_, index) => `LABEL=x /m${index} ext4\n`).join('');
  assert.equal(parseFstab(text).length, MAX_FSTAB_ENTRIES);
});

test('leaves out mount points and subvolumes that are too long or contain a NUL', () => {
  const entries = parseFstab(`LABEL=a /${'x'.repeat(256)} ext4
LABEL=b ${'/x'.repeat(2048)} ext4
LABEL=c /a\\000b ext4
LABEL=d /srv btrfs subvol=a\\000b
LABEL=e /${'x'.repeat(255)} ext4
`);
  assert.deepEqual(
    entries.map((entry) => entry.source),
    ['LABEL=e'],
  );
});

test('finds the source of the root in an fstab', () => {
  assert.equal(
    findRootSource('# /dev/a / ext4\n\nLABEL=my\\040disk / ext4 defaults\n'),
    'LABEL=my disk',
  );
  assert.equal(findRootSource('LABEL=x /srv ext4\n'), null);
});

test('finds the mounts of disks and their mapped volumes, and of no other device', () => {
  const mounts = `/dev/root / squashfs ro 0 0
/dev/vdb1 /mnt/a\\040b ext4 rw 0 0
/dev/vda /mnt/other ext4 rw 0 0
/dev/mapper/vg-root /mnt/lv ext4 rw 0 0
`;
  assert.deepEqual(findMounts(mounts, new Set(['/dev/vdb', '/dev/vdb1'])), [
    { device: '/dev/vdb1', where: '/mnt/a b' },
    { device: '/dev/mapper/vg-root', where: '/mnt/lv' },
  ]);
});

test('finds the file system of a source in fstab, in every spelling', () => {
  const base = {
    type: 'ext4',
    uuid: null,
    label: null,
    partUuid: null,
    partLabel: null,
    partType: null,
    diskIndex: null,
    partition: null,
  };
  const named = (path: string, more: Partial<FileSystem>): FileSystem => ({
    ...base,
    path,
    aliases: [path],
    ...more,
  });
  const all = [
    named('/dev/vdb1', { uuid: 'AB-12', diskIndex: 0, partition: 1 }),
    named('/dev/vdc', { label: 'data', diskIndex: 1 }),
    named('/dev/mapper/vg-root', { aliases: ['/dev/mapper/vg-root', '/dev/vg/root'] }),
    named('/dev/vdb2', { partUuid: 'ffff-02', partLabel: 'esp', diskIndex: 0, partition: 2 }),
  ];
  const found = (source: string): string | undefined => matchFstabSource(source, all)?.path;
  assert.equal(found('UUID=ab-12'), '/dev/vdb1');
  assert.equal(found('UUID="AB-12"'), '/dev/vdb1');
  assert.equal(found('/dev/disk/by-uuid/AB-12'), '/dev/vdb1');
  assert.equal(found('LABEL=data'), '/dev/vdc');
  all.push(named('/dev/vdd', { label: 'Data' }), named('/dev/vde', { label: 'DATA' }));
  assert.equal(found('LABEL=Data'), '/dev/vdd');
  assert.equal(found('/dev/disk/by-label/DATA'), '/dev/vde');
  assert.equal(found('LABEL='), undefined);
  assert.equal(found('PARTUUID=FFFF-02'), '/dev/vdb2');
  assert.equal(found('PARTLABEL=esp'), '/dev/vdb2');
  for (const name of ['/dev/vda1', '/dev/sda1', '/dev/xvda1', '/dev/hda1'])
    assert.equal(found(name), '/dev/vdb1');
  assert.equal(found('/dev/sdb'), '/dev/vdc');
  assert.equal(found('/dev/vg/root'), '/dev/mapper/vg-root');
  assert.equal(found('/dev/sdz1'), undefined);
});

test('an OS parameter reaches a script as OSP_NAME, and only private and secret values are hidden', () => {
  const parameters = {
    'root-size': ['10G', 'public'],
    dhcp: ['yes', 'private'],
    key: ['s3cret', 'secret'],
  } satisfies Record<string, [string, 'public' | 'private' | 'secret']>;
  const environment = createScriptEnvironment({ DISK_0_PATH: '/dev/x' }, parameters);
  assert.deepEqual(Object.keys(environment).sort(), [
    'DISK_0_PATH',
    'OSP_DHCP',
    'OSP_KEY',
    'OSP_ROOT_SIZE',
    'PATH',
  ]);
  assert.equal(environment['OSP_ROOT_SIZE'], '10G');
  assert.deepEqual(listHiddenValues(parameters), ['yes', 's3cret']);
});
