import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { commandFailed, recordCommands } from './recorded-commands.ts';

const VOLUME = { group: 'xenvg', name: 'a.disk' };
const CONFIG = '--config devices/scan_lvs=0';
const REPORT = '--reportformat json --units b --nosuffix -o';
const NEW = { ...VOLUME, sizeBytes: 4096, tags: ['t1', 't2'] };
const MADE = { name: 'a.next', tags: ['t1'] };
const ROWS: Readonly<Record<string, (lvm: VolumeSystem) => Promise<unknown>>> = {
  [`change lvm lvcreate ${CONFIG} --yes --activate y --wipesignatures y --zero y --size 4096b --addtag t1 --addtag t2 --name a.disk xenvg`]:
    (lvm) => lvm.create(NEW),
  [`change lvm lvcreate ${CONFIG} --yes --activate y --type thin --thinpool thin --virtualsize 4096b --addtag t1 --addtag t2 --name a.disk xenvg`]:
    (lvm) => lvm.create({ ...NEW, pool: 'thin' }),
  [`change lvm lvcreate ${CONFIG} --yes --snapshot --setactivationskip n --activate y --addtag t1 --name a.next xenvg/a.disk`]:
    (lvm) => lvm.clone(VOLUME, { ...MADE, isActive: true }),
  [`change lvm lvcreate ${CONFIG} --yes --snapshot --setactivationskip n --activate n --addtag t1 --name a.next xenvg/a.disk`]:
    (lvm) => lvm.clone(VOLUME, { ...MADE, isActive: false }),
  [`change lvm lvextend ${CONFIG} --size 8192b xenvg/a.disk`]: (lvm) => lvm.extend(VOLUME, 8192),
  [`change lvm lvrename ${CONFIG} xenvg a.disk b.disk`]: (lvm) => lvm.rename(VOLUME, 'b.disk'),
  [`change lvm lvremove ${CONFIG} --yes xenvg/a.disk`]: (lvm) => lvm.remove(VOLUME),
  [`change lvm lvchange ${CONFIG} --activate y xenvg/a.disk`]: (lvm) => lvm.activate(VOLUME),
  [`change lvm lvchange ${CONFIG} --addtag t xenvg/a.disk`]: (lvm) => lvm.tag(VOLUME, { add: 't' }),
  [`change lvm lvchange ${CONFIG} --deltag t xenvg/a.disk`]: (lvm) =>
    lvm.tag(VOLUME, { remove: 't' }),
};

for (const [line, act] of Object.entries(ROWS)) {
  test(`LVM runs: ${line}`, async () => {
    const { commands, lines } = recordCommands();
    await act(createLvm(commands));
    assert.deepEqual(lines, [line]);
  });
}

test('LVM reports groups and volumes in bytes, without looking inside volumes', async () => {
  const { commands, lines } = recordCommands({
    'lvm vgs': '{"report":[{"vg":[]}]}',
    'lvm lvs': '{"report":[{"lv":[]}]}',
  });
  const lvm = createLvm(commands);
  assert.deepEqual([await lvm.listGroups(), await lvm.listVolumes()], [[], []]);
  assert.deepEqual(lines, [
    `read lvm vgs ${CONFIG} ${REPORT} vg_name,vg_uuid,vg_size,vg_free,vg_extent_size`,
    `read lvm lvs ${CONFIG} ${REPORT} vg_name,vg_uuid,lv_name,lv_size,lv_tags,lv_active,origin,lv_attr,pool_lv,data_percent,metadata_percent`,
  ]);
});

for (const [said, isScanned] of [
  ['scan_lvs=0\n', false],
  ['scan_lvs=1\n', true],
  ['', true],
] as const) {
  test(`LVM that says ${JSON.stringify(said)} ${isScanned ? 'scans' : 'does not scan'} inside volumes`, async () => {
    const { commands, lines } = recordCommands({ lvm: said });
    assert.equal(await createLvm(commands).isScanned(), isScanned);
    // The host's own configuration, without an override.
    assert.deepEqual(lines, ['read lvm lvmconfig --typeconfig full devices/scan_lvs']);
  });
}

test('LVM zeroes a range of bytes with time in proportion, and nothing for an empty range', async () => {
  const { commands, lines } = recordCommands();
  const lvm = createLvm(commands);
  await lvm.zero(VOLUME, 4096, 4096);
  await lvm.zero(VOLUME, 8192, 4096);
  assert.deepEqual(lines, []);
  // The device is missing here, so its sync fails after the command.
  await assert.rejects(lvm.zero(VOLUME, 1000, 9001), { code: 'ENOENT' });
  assert.deepEqual(lines, [
    'change {"moreMs":3,"isTiedToDaemon":true} blkdiscard --force --zeroout --step 67108864 --offset 1000 --length 8001 /dev/xenvg/a.disk',
  ]);
});

test('places and paths of LVM', async () => {
  const lvm = createLvm(recordCommands().commands);
  assert.equal(lvm.roomName, 'volumes');
  assert.equal(lvm.pathOf(VOLUME), '/dev/xenvg/a.disk');
  assert.deepEqual(lvm.parsePlace('xenvg/thin'), { group: 'xenvg', pool: 'thin' });
  assert.deepEqual(lvm.parsePlace('xenvg'), { group: 'xenvg', pool: undefined });
  assert.deepEqual(lvm.placeOf({ vg: 'xenvg', pool: 'thin' }), { group: 'xenvg', pool: 'thin' });
  assert.deepEqual(lvm.placeOf({ vg: 'xenvg' }), { group: 'xenvg', pool: undefined });
});

test('only a block device is a volume that is there', async () => {
  const lvm = createLvm(recordCommands().commands);
  assert.equal(await lvm.isThere(VOLUME), false);
  assert.equal(await lvm.isThere({ group: '.', name: 'null' }), false);
  await assert.rejects(lvm.isThere({ group: 'null', name: 'a' }), { code: 'ENOTDIR' });
});

const FULL = { code: 'DISK_FULL', hint: /vgextend xenvg DEVICE/ };
for (const [stderr, exitStatus, expected] of [
  ['  Insufficient free space: 2 extents needed', 5, FULL],
  ['  Free space in pool xenvg/thin reached threshold.', 5, FULL],
  ['  No free space in the pool', 5, FULL],
  ['  Device is busy', 5, { code: 'COMMAND_FAILED' }],
  ['', 127, { code: 'HOST_PREREQUISITE', hint: 'apt-get install lvm2' }],
] as const) {
  test(`a failure of LVM is ${expected.code}: ${stderr || exitStatus}`, async () => {
    const { commands } = recordCommands({ lvm: commandFailed(stderr, exitStatus) });
    const lvm = createLvm(commands);
    await assert.rejects(lvm.create(NEW), expected);
    await assert.rejects(lvm.clone(VOLUME, { ...MADE, isActive: true }), expected);
    await assert.rejects(lvm.extend(VOLUME, 8192), expected);
    const other = expected === FULL ? { code: 'COMMAND_FAILED' } : expected;
    await assert.rejects(lvm.remove(VOLUME), other);
    await assert.rejects(lvm.isScanned(), other);
  });
}
