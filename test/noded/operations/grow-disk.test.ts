import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import { settingsOfStart } from '../../../noded/instances/view/settings-of-run.ts';
import { growDiskHandler, plannedSize } from '../../../noded/operations/grow-disk.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab } from './operation-lab.ts';

const web1 = {
  name: 'web1',
  disks: [10, 20].map((sizeGiB) => ({
    uuid: '0e7a6a3e-0000-4000-8000-000000000000',
    name: null,
    sizeBytes: sizeGiB * GIB,
  })),
};
const asked = (disk: number, amountBytes: number, absolute = false) =>
  ({ opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk, amountBytes, absolute }) as const;

test('an amount is added, an absolute one is the new size', () => {
  assert.equal(plannedSize(web1, asked(1, 5 * GIB)), 25 * GIB);
  assert.equal(plannedSize(web1, asked(0, 11 * GIB, true)), 11 * GIB);
});

test('no disk shrinks, or is left as it is', () => {
  for (const sizeBytes of [9 * GIB, 10 * GIB])
    assert.throws(() => plannedSize(web1, asked(0, sizeBytes, true)), {
      code: 'VALIDATION',
      message: /disk 0 of 'web1' already has 10240 MiB/,
    });
});

test('a disk that is not there is named, with those that are', () => {
  assert.throws(() => plannedSize(web1, asked(2, GIB)), {
    message: /no disk 2: it has disk 0 to 1/,
  });
  assert.throws(() => plannedSize({ name: 'web1', disks: [] }, asked(0, GIB)), {
    message: /it has no disks/,
  });
});

const stored = instanceRecord({
  name: 'web1',
  disks: [10, 20, 30].map((sizeGiB) => ({ sizeBytes: sizeGiB * GIB })),
});
const [first, second, third] = stored.disks as [Disk, Disk, Disk];
type Disk = (typeof stored.disks)[number];

/** Grows the last disk by 5 GiB. `grown` lists the disks that QEMU grew, by its names. */
function grow(disks: readonly Disk[], ofRun: readonly Disk[] | null) {
  const grown: unknown[] = [];
  const growDisk = async (disk: unknown, sizeBytes: number) =>
    void grown.push([disk, sizeBytes / GIB]);
  const kept = ofRun === null ? undefined : { machine: { growDisk } };
  const record = { ...stored, disks: [...disks] };
  const partsOfRun = ofRun && settingsOfStart({ ...record, disks: [...ofRun] });
  const lab = createOperationLab({ ...record, partsOfRun }, { runner: { running: () => kept } });
  const input = asked(disks.length - 1, 5 * GIB);
  return { ...lab, grown, ended: lab.run(growDiskHandler, input) };
}

const sizesIn = (disks: readonly Disk[] = []) => disks.map(({ sizeBytes }) => sizeBytes / GIB);

test('a disk of a stopped instance grows before its record says so', async () => {
  const { ended, steps, record } = grow([first, second], null);
  assert.deepEqual(await ended, { name: 'web1', disk: 1, sizeBytes: 25 * GIB });
  assert.deepEqual(steps, [
    ...['disks.checkSizes', 'runner.checkDisksUnused', 'execute', 'disks.grow'],
    'instances.update',
  ]);
  assert.deepEqual(sizesIn(record()?.disks), [10, 25]);
  assert.equal(record()?.partsOfRun, null);
});

test('a disk of a running instance grows below QEMU, then in it, and its guest is told', async () => {
  const { ended, steps, grown, record } = grow([first, second], [first, second]);
  await ended;
  assert.deepEqual(steps, [
    ...['disks.checkSizes', 'execute', 'disks.growBelow', 'instances.update'],
    'runner.republish',
  ]);
  assert.deepEqual(grown, [[1, 25]]);
  const { disks, partsOfRun } = record() ?? assert.fail();
  assert.deepEqual(
    [sizesIn(disks), sizesIn(partsOfRun?.disks)],
    [
      [10, 25],
      [10, 25],
    ],
  );
});

test('QEMU knows an added disk by its UUID, and the others by their number among themselves', async () => {
  const added = { ...second, port: 3 };
  const ofSlot = grow([first, added, third], [first, added, third]);
  await ofSlot.ended;
  assert.deepEqual(ofSlot.grown, [[1, 35]]);
  const ofPort = grow([first, added], [first, added]);
  await ofPort.ended;
  assert.deepEqual(ofPort.grown, [[second.uuid, 25]]);
});

test('a disk that the running QEMU process does not have yet cannot grow', async () => {
  const { ended, steps } = grow([first, second], [first]);
  await assert.rejects(ended, { code: 'INSTANCE_STATE', message: /attached at its next start/ });
  assert.ok(!steps.includes('execute'));
});
