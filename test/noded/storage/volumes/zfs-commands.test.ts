import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createZfs } from '../../../../noded/storage/drivers/zfs/zfs.ts';
import { commandFailed, recordCommands } from './recorded-commands.ts';
import { DATASETS } from './zfs-samples.ts';

const VOLUME = { group: 'tank/vms', name: 'a.disk' };
const PATH = 'tank/vms/a.disk';
/** A path below a file: the wait for a device's name fails at once. */
const NEVER = { group: '../null', name: 'a.disk' };
const NO_DEVICE = { code: 'ENOTDIR' };
const TAGS = ['gnt:node=n1', 'gnt:instance=i'];
const LIST = 'read zfs list -Hp -t snapshot -o name,clones,defer_destroy -s createtxg -d 1';
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

for (const [lines, act] of [
  [
    ['change zfs set volsize=8192 tank/vms/a.disk'],
    (zfs: VolumeSystem) => zfs.extend(VOLUME, 8192),
  ],
  [
    ['change zfs rename tank/vms/a.disk tank/vms/a.snapshot-b'],
    (zfs: VolumeSystem) => zfs.rename(VOLUME, 'a.snapshot-b'),
  ],
  [
    ['change zfs set gnt:node=n1 tank/vms/a.disk'],
    (zfs: VolumeSystem) => zfs.tag(VOLUME, { add: 'gnt:node=n1' }),
  ],
  [
    ['change zfs inherit gnt:node tank/vms/a.disk'],
    (zfs: VolumeSystem) => zfs.tag(VOLUME, { remove: 'gnt:node=n1' }),
  ],
  [
    [
      'change zfs snapshot tank/vms/a.disk@gnt-UUID',
      'change zfs clone -o volmode=none -o gnt:node=n1 -o gnt:instance=i tank/vms/a.disk@gnt-UUID tank/vms/b.next',
      'change zfs destroy -d tank/vms/a.disk@gnt-UUID',
    ],
    (zfs: VolumeSystem) => zfs.clone(VOLUME, { name: 'b.next', tags: TAGS, isActive: false }),
  ],
] as const) {
  test(`ZFS runs: ${lines[0]}`, async () => {
    const recorded = recordCommands();
    await act(createZfs(recorded.commands));
    const found = recorded.lines.map((line) => line.replace(UUID, 'UUID'));
    assert.deepEqual(found, lines);
  });
}

for (const [line, act] of [
  [
    'change zfs create -s -V 4096 -o volmode=dev -o gnt:node=n1 -o gnt:instance=i ../null/a.disk',
    (zfs: VolumeSystem) => zfs.create({ ...NEVER, sizeBytes: 4096, tags: TAGS }),
  ],
  [
    'change zfs clone -o volmode=dev ../null/a.disk@gnt-UUID ../null/b.next',
    (zfs: VolumeSystem) => zfs.clone(NEVER, { name: 'b.next', tags: [], isActive: true }),
  ],
  [
    'change zfs rename ../null/a.disk ../null/b.disk',
    (zfs: VolumeSystem) => zfs.rename(NEVER, 'b.disk'),
  ],
  [`${LIST} ../null/a.disk`, (zfs: VolumeSystem) => zfs.activate(NEVER)],
] as const) {
  test(`ZFS waits for the device after: ${line}`, async () => {
    const { commands, lines } = recordCommands();
    await assert.rejects(act(createZfs(commands)), NO_DEVICE);
    const found = lines.map((one) => one.replace(UUID, 'UUID'));
    assert.ok(found.includes(line), found.join('\n'));
  });
}

test('a ZFS volume whose snapshot was left gives the snapshot up before its use', async () => {
  const { commands, lines } = recordCommands({
    'zfs list': [
      '../null/a.disk@gnt-1\t\toff\n',
      '../null/a.disk@gnt-2\ttank/b\ton\n',
      '../null/a.disk@daily\t\toff\n',
    ].join(''),
  });
  await assert.rejects(createZfs(commands).activate(NEVER), NO_DEVICE);
  assert.deepEqual(lines.slice(1), ['change zfs destroy -d ../null/a.disk@gnt-1']);
});

test('a snapshot of a clone that failed is given up', async () => {
  const { commands, lines } = recordCommands({ 'zfs clone': commandFailed('out of space') });
  const made = { name: 'b.next', tags: [], isActive: true };
  await assert.rejects(createZfs(commands).clone(VOLUME, made), { code: 'DISK_FULL' });
  assert.match(lines.at(-1) ?? '', /^change zfs destroy -d tank\/vms\/a\.disk@gnt-/);
});

test('a removed ZFS volume hands its blocks to clones of own snapshots, the last snapshot first', async () => {
  const rows = (...parts: readonly string[]): string => `${parts.join('\n')}\n`;
  const lists = [
    rows(
      `${PATH}@gnt-1\ttank/vms/b\ton`,
      `${PATH}@gnt-2\ttank/vms/c,tank/vms/d\ton`,
      `${PATH}@daily\ttank/vms/e\toff`,
    ),
    rows(`${PATH}@gnt-3\t\toff`, `${PATH}@daily\ttank/vms/e\toff`),
    rows(`${PATH}@gnt-3\t\toff`, `${PATH}@daily\ttank/vms/e\toff`),
  ];
  const { commands, lines } = recordCommands();
  const zfs = createZfs({
    ...commands,
    read: async (command, args) => {
      await commands.read(command, args);
      return lists.shift() ?? '';
    },
  });
  await zfs.remove(VOLUME);
  assert.deepEqual(lines, [
    `${LIST} ${PATH}`,
    'change zfs promote tank/vms/c',
    `${LIST} ${PATH}`,
    `${LIST} ${PATH}`,
    `change zfs destroy -d ${PATH}@gnt-3`,
    `change zfs destroy ${PATH}`,
  ]);
});

test('a busy ZFS volume is destroyed again, up to ten times', async () => {
  const destructions = (lines: readonly string[]): number =>
    lines.filter((line) => line.startsWith('change zfs destroy')).length;
  const busy = recordCommands({ 'zfs destroy': commandFailed('dataset is busy') });
  await assert.rejects(createZfs(busy.commands, 0).remove(VOLUME), { code: 'COMMAND_FAILED' });
  assert.equal(destructions(busy.lines), 10);
  const other = recordCommands({ 'zfs destroy': commandFailed('has children') });
  await assert.rejects(createZfs(other.commands, 0).remove(VOLUME), { code: 'COMMAND_FAILED' });
  assert.equal(destructions(other.lines), 1);
});

test('a row of snapshots with a missing column is refused', async () => {
  const { commands } = recordCommands({ 'zfs list': '../null/a.disk@gnt-1\t\n' });
  await assert.rejects(createZfs(commands).activate(NEVER), /zfs list printed/);
});

test('ZFS lists snapshots only of datasets with volumes of ours', async () => {
  const { commands, lines } = recordCommands({ 'zfs list -Hp -t filesystem': DATASETS });
  await createZfs(commands).listVolumes();
  assert.deepEqual(lines, [
    'read zfs list -Hp -t filesystem,volume -o name,type,guid,used,available,referenced,volsize,gnt:instance,gnt:node,name',
    'read zfs list -Hp -t snapshot -o name,clones,defer_destroy -s createtxg -d 2 tank/backup tank/vms',
  ]);
  const foreign = DATASETS.split('\n').filter((row) => !row.includes('node1'));
  const others = recordCommands({ 'zfs list -Hp -t filesystem': foreign.join('\n') });
  await createZfs(others.commands).listVolumes();
  assert.equal(others.lines.length, 1);
});

for (const [config, isScanned] of [
  ['global_filter=["r|^/dev/zd|"]\n', false],
  ['global_filter=["a|.*|"]\n', true],
  ['global_filter=["r|/dev/zd|","a|/dev/zvol/|"]\n', true],
  ['global_filter=["r|/dev/zd|","a|^/dev/pool/|"]\n', true],
  ['global_filter=["a|/dev/sda|","r|/dev/zvol/|"]\n', false],
  [commandFailed('', 127), false],
] as const) {
  const what = typeof config === 'string' ? config.trim() : 'a host without LVM';
  test(`${isScanned ? 'LVM looks' : 'no LVM looks'} into ZFS volumes: ${what}`, async () => {
    const { commands, lines } = recordCommands({ lvm: config });
    assert.equal(await createZfs(commands).isScanned(), isScanned);
    assert.deepEqual(lines, [
      'read lvm lvmconfig --typeconfig full devices/filter devices/global_filter',
    ]);
  });
}

test('an LVM that fails does not count as absent', async () => {
  const { commands } = recordCommands({ lvm: commandFailed('Locked', 5) });
  await assert.rejects(createZfs(commands).isScanned(), { code: 'COMMAND_FAILED' });
});

test('places and paths of ZFS', async () => {
  const zfs = createZfs(recordCommands().commands);
  assert.equal(zfs.roomName, 'zvols');
  assert.equal(zfs.pathOf(VOLUME), '/dev/zvol/tank/vms/a.disk');
  assert.deepEqual(zfs.parsePlace('tank/vms'), { group: 'tank/vms', pool: 'tank' });
  assert.deepEqual(zfs.placeOf({ dataset: 'tank/vms' }), { group: 'tank/vms', pool: 'tank' });
  assert.equal(await zfs.isThere(VOLUME), false);
  assert.equal(await zfs.isThere({ group: '..', name: 'null' }), false);
  await assert.rejects(zfs.isThere(NEVER), NO_DEVICE);
  await assert.rejects(zfs.zero(VOLUME, 0, 1), /a ZFS volume was about to be zeroed/);
});

const FULL = { code: 'DISK_FULL', hint: /zfs get quota tank\/vms/ };
const UNLOADED = { code: 'HOST_PREREQUISITE', hint: /^Run modprobe zfs/ };
for (const [stderr, exitStatus, expected] of [
  ["cannot create 'a': out of space", 1, FULL],
  ['no space left on device', 1, FULL],
  ['dataset quota exceeded', 1, FULL],
  ['dataset already exists', 1, { code: 'COMMAND_FAILED' }],
  ['The ZFS modules are not loaded.', 1, UNLOADED],
  ['The ZFS module is not loaded', 1, UNLOADED],
  ["Try running '/sbin/modprobe zfs' as root", 1, UNLOADED],
  ['cannot open /dev/zfs', 1, UNLOADED],
  ['', 127, { code: 'HOST_PREREQUISITE', hint: /^Install zfsutils-linux/ }],
] as const) {
  test(`a failure of ZFS is ${expected.code}: ${stderr || exitStatus}`, async () => {
    const { commands } = recordCommands({ zfs: commandFailed(stderr, exitStatus) });
    const zfs = createZfs(commands);
    await assert.rejects(zfs.create({ ...VOLUME, sizeBytes: 1, tags: [] }), expected);
    await assert.rejects(zfs.extend(VOLUME, 8192), expected);
    const other = expected === FULL ? { code: 'COMMAND_FAILED' } : expected;
    await assert.rejects(zfs.rename(VOLUME, 'b.disk'), other);
    await assert.rejects(zfs.listGroups(), other);
  });
}
