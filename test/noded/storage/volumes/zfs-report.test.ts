import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zfsDataset } from '#shared/contract/disk-template.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { findPools } from '../../../../noded/storage/drivers/volumes/thin-pools.ts';
import { findOwn } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import {
  groupsOf,
  parseDatasets,
  parseSnapshots,
  volumesOf,
} from '../../../../noded/storage/drivers/zfs/zfs-report.ts';
import { DATASETS, DISK, INSTANCE, SNAPSHOTS } from './zfs-samples.ts';

const datasets = parseDatasets(DATASETS);
const snapshots = parseSnapshots(SNAPSHOTS);
const volumes = volumesOf(datasets, snapshots, () => true);

test('datasets are places for volumes with the room that they may have', () => {
  assert.deepEqual(
    groupsOf(datasets).map(({ name, sizeBytes, freeBytes }) => [name, sizeBytes, freeBytes]),
    [
      ['tank', 369098752, 368394240],
      ['tank/backup', 368394240, 368369664],
      ['tank/vms', 368492544, 368394240],
    ],
  );
  const [, , vms] = findPools(volumes);
  assert.deepEqual(
    [vms?.group, vms?.name, vms?.freeBytes, vms?.isZeroing],
    ['tank/vms', 'tank', 368394240, true],
  );
});

test('a volume is ours by its name and its property together, and in the dataset that it was made in', () => {
  const own = findOwn(volumes);
  assert.deepEqual(
    own.map(({ group, disk, instance, state, node, sizeBytes, pool }) => [
      ...[group, disk, instance, state.kind, node, sizeBytes, pool],
    ]),
    [
      ['tank/vms', DISK, INSTANCE, 'disk', 'node1.example.com', 4194304, 'tank'],
      ['tank/vms', DISK, INSTANCE, 'snapshot', 'node1.example.com', 4194304, 'tank'],
    ],
  );
  // A received copy of the dataset has its names and properties, but another parent.
  const received = `tank/backup/${DISK}.disk`;
  assert.ok(datasets.some(({ name }) => name === received));
});

test("an administrator's snapshots of a disk are told, those that its clones need are not", () => {
  const [disk, snapshot] = findOwn(volumes);
  assert.deepEqual(disk?.dependents, [`${DISK}.disk@daily`]);
  assert.deepEqual(snapshot?.dependents, []);
});

test('a disk owes what a snapshot was not given up for, and is not ready without its device', () => {
  const isActive = (more: string, hasDevice = true): boolean | undefined =>
    findOwn(volumesOf(datasets, parseSnapshots(SNAPSHOTS + more), () => hasDevice))[0]?.isActive;
  assert.equal(isActive(''), true);
  assert.equal(isActive('', false), false);
  assert.equal(isActive(`tank/vms/${DISK}.disk@gnt-2\t\toff\n`), false);
});

test('what is no report of zfs is refused, and none of them is empty', () => {
  assert.deepEqual(parseDatasets(''), []);
  assert.deepEqual(parseSnapshots(''), []);
  assert.throws(() => parseDatasets('tank\tfilesystem\n'), { code: 'CONFLICT' });
  assert.throws(() => parseDatasets(DATASETS.replace('368394240', '351M')));
  assert.throws(() => parseSnapshots('tank/vms/a@b\t-\tmaybe\n'));
});

test('no value of a property of another dataset makes a volume ours, or hides one', () => {
  const victim = `tank/vms/${DISK}.leaving`;
  const tag = `${INSTANCE}:10203946128712871934`;
  const forged = [
    victim,
    'volume',
    '7',
    '0',
    '0',
    '0',
    '8388608',
    tag,
    'node1.example.com',
    victim,
  ];
  const evil = ['evil', 'filesystem', '1', '0', '0', '0', '-'];
  const again = [...evil, '-'].join('\t');
  for (const value of [
    'a\tb',
    'a\nb',
    `x\tevil\n${forged.join('\t')}`,
    `x\tevil\n${forged.join('\t')}\n${again}\tx`,
    `x\tevil\n${forged.slice(0, -1).join('\t')}`,
    `x\n${forged.join('\t')}\n`,
    'x\tevil\n',
  ]) {
    const asNode = `${[...evil, '-', value, 'evil'].join('\t')}\n`;
    const asInstance = `${[...evil, value, '-', 'evil'].join('\t')}\n`;
    for (const row of [asNode, asInstance])
      for (const report of [row + DATASETS, DATASETS + row])
        assert.throws(
          () => parseDatasets(report),
          (error) =>
            error instanceof AppError &&
            error.code === 'CONFLICT' &&
            !`${error.message}${error.hint}`.includes(DISK),
          JSON.stringify(value),
        );
  }
});

test('the name of a dataset is no option, no path and no snapshot', () => {
  for (const name of ['tank', 'rpool/data', 'tank/vms.1/a-b_c:d'])
    assert.ok(zfsDataset.safeParse(name).success, name);
  const wrong = [
    '',
    '-f',
    '/tank',
    'tank/',
    'tank//a',
    'tank/..',
    'tank/./a',
    'tank@a',
    'a b',
    '9',
  ];
  for (const name of [...wrong, `t${'x'.repeat(120)}`])
    assert.equal(zfsDataset.safeParse(name).success, false, name);
});
