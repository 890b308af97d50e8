import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createVolumeDriver } from '../../../../noded/storage/drivers/volumes/volume-driver.ts';
import { FULL_SHARE } from '../../../../noded/storage/drivers/volumes/thin-pools.ts';
import type {
  Volume,
  VolumeSystem,
} from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { InstanceFolders } from '../../../../noded/storage/instance-folders.ts';
import { instanceRecord } from '../../support/records.ts';
import { createMemoryVolumes } from './memory-volumes.ts';
import { HERE, uuidOf } from './volume-suite.ts';

const [A, B, C] = [uuidOf(10), uuidOf(11), uuidOf(12)];
const ID = uuidOf(30);
const GROUP = { name: 'xenvg', uuid: 'g', sizeBytes: 400, freeBytes: 100, extentBytes: 4 };
const TAGS = [`gnt:instance=${uuidOf(1)}:g`];
const POOL = {
  ...{ name: 'thin', isPool: true, isZeroing: true, tags: [], sizeBytes: 400 },
  ...{ usedShare: 0.5, dataShare: 0.5 },
};
let dir = '';

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-driver-'));
});
after(() => rm(dir, { recursive: true }));

type Given = Partial<Volume> & { readonly name: string };
const disk = (uuid: string, more: object = {}): InstanceRecord['disks'][number] => ({
  ...{ uuid, name: null, sizeBytes: 8, vg: 'xenvg', ...more },
});
const record = (...uuids: readonly string[]): InstanceRecord =>
  instanceRecord(
    { name: 'web1' },
    {
      ...{ uuid: uuidOf(1), diskTemplate: 'plain', instanceId: ID, installState: 'installed' },
      disks: uuids.map((uuid) => disk(uuid)),
    },
  );

function lab(given: readonly Given[], changes: Partial<VolumeSystem> = {}) {
  const all = given.map((one) => ({ tags: TAGS, ...one }));
  const memory = createMemoryVolumes(all, [GROUP]);
  const system = { ...memory.system, ...changes };
  const driver = createVolumeDriver(new InstanceFolders(dir), { ...HERE, system });
  return { ...memory, driver };
}

test('disks are named by their paths, and missing ones by their number', async () => {
  const { driver } = lab([{ name: `${A}.disk` }]);
  assert.equal(driver.pathOf(record(A, B), 1), `/nonexistent/${B}.disk`);
  assert.throws(() => driver.pathOf(record(A), 1), /'web1' has no disk 1/);
  await driver.requireDisks(record(A));
  await assert.rejects(driver.requireDisks(record(A, B)), {
    ...{ code: 'DISK_MISSING', message: `disk 1 of 'web1' is missing at /nonexistent/${B}.disk` },
  });
});

test('sizes are refused before anything is made: of a scanned host, a full group, another node', async () => {
  const check = (sizeBytes: number, { driver }: ReturnType<typeof lab>): Promise<void> =>
    driver.checkSizes([{ ...disk(B), sizeBytes }], record(A));
  await check(100, lab([]));
  await assert.rejects(check(104, lab([])), { code: 'DISK_SPACE' });
  await assert.rejects(check(100, lab([], { isScanned: async () => Promise.resolve(true) })), {
    code: 'HOST_PREREQUISITE',
  });
  const foreign = { name: `${C}.disk`, tags: [...TAGS, 'gnt:node=other'] };
  await assert.rejects(check(8, lab([foreign])), { code: 'CONFLICT' });
});

for (const [what, pool, own, expected] of [
  ['no volume of its own', { usedShare: 1 }, [], null],
  ['a pool below the limit', { usedShare: FULL_SHARE - 0.01 }, ['thin'], false],
  ['a pool at the limit', { usedShare: FULL_SHARE }, ['thin'], true],
  ['another pool that is full', { usedShare: 1 }, ['other'], false],
] as const) {
  test(`an instance with ${what} has ${String(expected)} for a full pool`, async () => {
    const { driver } = lab([
      { ...POOL, ...pool },
      ...own.map((name) => ({ name: `${A}.disk`, pool: name })),
    ]);
    assert.equal(await driver.volumes?.isPoolFull({ uuid: uuidOf(1) }), expected);
  });
}

test('the room of the node is that of the place for new disks', async () => {
  const { driver } = lab([]);
  assert.deepEqual(await driver.volumes?.room(), { volumes: { sizeBytes: 400, freeBytes: 100 } });
  const absent = lab([], { listGroups: async () => Promise.resolve([]) });
  assert.deepEqual(await absent.driver.volumes?.room(), {});
});

test('volumes of groups that are not there are listed, snapshots too', async () => {
  const { driver } = lab([]);
  const disks = [disk(A), disk(B, { vg: 'gone' })];
  const snapshots = [{ uuid: uuidOf(20), disks }] as unknown as InstanceRecord['snapshots'];
  const absent = (known: object): Promise<readonly string[]> | undefined =>
    driver.volumes?.listAbsent({ ...record(A), ...known });
  assert.deepEqual(await absent({ disks, snapshots }), [
    `gone/${B}.disk`,
    `gone/${B}.snapshot-${uuidOf(20)}`,
  ]);
  assert.deepEqual(await absent({ disks: [disk(A)] }), []);
});

const noLvm = new AppError('HOST_PREREQUISITE', 'no LVM');
const busy = new AppError('COMMAND_TIMEOUT', 'LVM hangs');
for (const [what, failure, diskTemplate, hasFiles, expected] of [
  ['an unknown instance on a node without LVM', noLvm, undefined, false, null],
  ['an instance in files while LVM hangs', busy, undefined, true, null],
  ['an unknown instance while LVM hangs', busy, undefined, false, 'COMMAND_TIMEOUT'],
  ['an instance in volumes on a node without LVM', noLvm, 'plain', false, 'HOST_PREREQUISITE'],
] as const) {
  test(`the removal of ${what} ${expected === null ? 'goes on' : `fails with ${expected}`}`, async () => {
    const uuid = uuidOf(hasFiles ? 2 : 3);
    if (hasFiles) {
      await mkdir(join(dir, uuid), { recursive: true });
      await writeFile(join(dir, uuid, 'disk0.raw'), '');
    }
    const { driver } = lab([], { listVolumes: async () => Promise.reject(failure) });
    const known = { uuid, ...(diskTemplate !== undefined && { diskTemplate }) };
    const held = driver.volumes?.holdForRemoval(known);
    if (expected !== null) return assert.rejects(held ?? assert.fail(), { code: expected });
    await (await held)?.remove();
  });
}

test('a removal takes all volumes of the instance, and none of others', async () => {
  const other = { name: `${C}.disk`, tags: [`gnt:instance=${uuidOf(2)}:g`] };
  const { driver, calls } = lab([{ name: `${A}.disk` }, { name: `${B}.leaving` }, other]);
  const held = await driver.volumes?.holdForRemoval({ uuid: uuidOf(1) });
  assert.deepEqual(calls, []);
  await held?.remove();
  assert.deepEqual(calls, [`remove ${A}.disk`, `remove ${B}.leaving`]);
});

test('an installation in place empties present volumes, makes others and removes unfinished ones', async () => {
  const { driver, calls } = lab([
    { name: `${A}.disk` },
    { name: `${B}.new` },
    { name: `${B}.next-${ID}` },
  ]);
  using disks = driver.openForInstall(record(A, B), { kind: 'in-place' });
  assert.deepEqual([disks.areBeside, disks.pathOf(1)], [false, `/nonexistent/${B}.disk`]);
  assert.equal(disks.pathOf(2), '');
  await disks.discard();
  assert.equal(calls.length, 0);
  await disks.create();
  const made = calls.map((call) => call.split(' ').slice(0, 2).join(' '));
  assert.deepEqual(made, [
    ...[`remove ${B}.new`, `zero ${A}.disk`, `create ${B}.new`, `zero ${B}.new`],
    `rename ${B}.new`,
  ]);
  calls.length = 0;
  await disks.discard();
  assert.deepEqual(
    calls.map((call) => call.split(' ').slice(0, 2).join(' ')),
    [`zero ${A}.disk`, `zero ${B}.disk`],
  );
});

test('an installation beside the disks replaces them only when it is taken over', async () => {
  const { driver, calls, list } = lab([
    { name: `${A}.disk` },
    { name: `${A}.next-${ID}`, sizeBytes: 4 },
    { name: `${A}.next-${uuidOf(31)}` },
  ]);
  using disks = driver.openForInstall(record(A), { kind: 'beside', neededBytes: 8 });
  assert.deepEqual([disks.areBeside, disks.pathOf(0)], [true, `/nonexistent/${A}.next-${ID}`]);
  await disks.create();
  assert.deepEqual(list().toSorted(), [
    ...[`${A}.disk 8`, `${A}.next-${ID} 8`, `${A}.next-${uuidOf(31)} 8`],
  ]);
  calls.length = 0;
  await disks.takeOver();
  assert.deepEqual(calls, [
    ...[`remove ${A}.disk`, `remove ${A}.next-${uuidOf(31)}`],
    `rename ${A}.next-${ID} ${A}.disk`,
  ]);
  await disks.discard();
  assert.deepEqual(list(), [`${A}.disk 8`]);
});

test('an added disk is ready before the commit, and a removed one leaves before it', async () => {
  const { driver, calls } = lab([{ name: `${A}.disk` }, { name: `${B}.disk` }]);
  const result = await driver.change(record(A, B), [disk(B), disk(C)], async () => {
    calls.push('commit');
    return Promise.resolve('done');
  });
  assert.equal(result, 'done');
  assert.deepEqual(
    calls.filter((call) => !call.startsWith('zero') && !call.startsWith('create')),
    [
      ...[`rename ${C}.new ${C}.ready`, `rename ${A}.disk ${A}.leaving`, 'commit'],
      ...[`remove ${A}.leaving`, `rename ${C}.ready ${C}.disk`],
    ],
  );
});

test('an added disk is removed again when another change fails; a failed commit leaves both to settling', async () => {
  const { driver, list, failAt } = lab([{ name: `${A}.disk` }]);
  failAt(`rename ${A}.disk`);
  const commit = async (): Promise<never> => Promise.reject(new Error('no commit'));
  await assert.rejects(driver.change(record(A), [disk(C)], commit), /failed: rename/);
  assert.deepEqual(list(), [`${A}.disk 8`]);
  failAt('never');
  await assert.rejects(driver.change(record(A), [disk(C)], commit), /no commit/);
  assert.deepEqual(list().toSorted(), [`${A}.leaving 8`, `${C}.ready 8`]);
});

test('a disk grows by its number; a disk without a volume does not', async () => {
  const { driver, calls } = lab([{ name: `${A}.disk` }, { name: `${B}.disk` }]);
  await driver.grow(record(A, B), 1, 12);
  assert.ok(calls.includes(`extend ${B}.disk 12`));
  calls.length = 0;
  await driver.volumes?.growBelow(record(A, B), 0, 16);
  assert.ok(calls.includes(`extend ${A}.disk 16`));
  await assert.rejects(driver.grow(record(A, C), 1, 12), { code: 'DISK_MISSING' });
});

test('an installation that is under way keeps its volumes from settling', async () => {
  for (const [installState, expected] of [
    ['installing', []],
    ['installed', [`remove ${A}.new`, `remove ${A}.next-${uuidOf(31)}`]],
  ] as const) {
    const { driver, calls } = lab([{ name: `${A}.new` }, { name: `${A}.next-${uuidOf(31)}` }]);
    await driver.settle({ ...record(A), installState });
    assert.deepEqual(calls, expected);
  }
});
