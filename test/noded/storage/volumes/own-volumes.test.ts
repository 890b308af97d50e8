import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceDisk } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import {
  createOwnVolumes,
  requireRecordedSize,
} from '../../../../noded/storage/drivers/volumes/own-volumes.ts';
import type { OwnVolume } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createMemoryVolumes } from './memory-volumes.ts';
import { HERE, uuidOf } from './volume-suite.ts';

const INSTANCE = { uuid: uuidOf(1) };
const [A, B] = [uuidOf(10), uuidOf(11)];
const GROUP = { name: 'xenvg', uuid: 'g', sizeBytes: 100, freeBytes: 100, extentBytes: 4 };
const POOL = { name: 'thin', isPool: true, isZeroing: true, usedShare: 0.1, dataShare: 0.1 };
const TAGS = [`gnt:instance=${INSTANCE.uuid}:g`];
const TAGS_MADE = `${TAGS[0]},gnt:node=${HERE.nodeName}`;
const disk = (changes: Partial<InstanceDisk> = {}): InstanceDisk => ({
  ...{ uuid: A, name: null, sizeBytes: 8, vg: 'xenvg', ...changes },
});

async function lab(...given: readonly (Partial<Volume> & { readonly name: string })[]) {
  const all = given.map((one) => ({ tags: TAGS, ...one }));
  const memory = createMemoryVolumes([...all, { ...POOL, tags: [] }], [GROUP]);
  const volumes = createOwnVolumes(memory.system, HERE);
  const [first] = await volumes.list(INSTANCE);
  return { ...memory, volumes, first: first as OwnVolume };
}

test('a volume has its name only after it is zeroed', async () => {
  const { volumes, calls } = await lab();
  await volumes.make(INSTANCE, disk(), { kind: 'ready' });
  assert.deepEqual(calls, [
    `create ${A}.new 8 ${TAGS_MADE} `,
    `zero ${A}.new 0 8`,
    `rename ${A}.new ${A}.ready`,
  ]);
});

test('a thin volume is not zeroed, but its pool is checked', async () => {
  const { volumes, calls } = await lab();
  await volumes.make(INSTANCE, disk({ pool: 'thin' }), { kind: 'disk' });
  assert.deepEqual(calls, [`create ${A}.new 8 ${TAGS_MADE} thin`, `rename ${A}.new ${A}.disk`]);
  await assert.rejects(volumes.make(INSTANCE, disk({ pool: 'gone' }), { kind: 'disk' }), {
    code: 'HOST_PREREQUISITE',
  });
  await assert.rejects(volumes.make(INSTANCE, disk({ vg: 'gone' }), { kind: 'disk' }), {
    code: 'HOST_PREREQUISITE',
  });
  assert.equal(calls.length, 2);
});

test('a volume that cannot be zeroed is removed, and the first failure told', async () => {
  const { volumes, list, failAt } = await lab();
  failAt('zero');
  await assert.rejects(volumes.make(INSTANCE, disk(), { kind: 'disk' }), /^Error: failed: zero/);
  assert.deepEqual(list(), ['thin 8']);
});

test('only volumes of the instance are listed', async () => {
  const other = { name: `${B}.disk`, tags: [`gnt:instance=${uuidOf(2)}:g`] };
  const { volumes } = await lab({ name: `${A}.disk` }, other);
  assert.deepEqual(
    (await volumes.list(INSTANCE)).map((volume) => volume.disk),
    [A],
  );
});

for (const [what, volume, expected] of [
  ['zeroed', {}, [`zero ${A}.disk 0 8`]],
  ['activated and zeroed', { isActive: false }, [`activate ${A}.disk`, `zero ${A}.disk 0 8`]],
  [
    'cleared of its tag',
    { tags: [...TAGS, 'gnt:dirty-from=4'] },
    [`zero ${A}.disk 0 8`, `tag ${A}.disk {"remove":"gnt:dirty-from=4"}`],
  ],
  [
    'made again in its pool',
    { pool: 'thin' },
    [`remove ${A}.disk`, `create ${A}.new 8 ${TAGS_MADE} thin`, `rename ${A}.new ${A}.disk`],
  ],
] as const) {
  test(`a volume to be emptied is ${what}`, async () => {
    const { volumes, calls, first } = await lab({ name: `${A}.disk`, ...volume });
    await volumes.empty(first);
    assert.deepEqual(calls, expected);
  });
}

for (const [what, volume, sizeBytes, expected] of [
  [
    'is marked until its new part is zeroed',
    {},
    12,
    [
      `tag ${A}.disk {"add":"gnt:dirty-from=8"}`,
      `extend ${A}.disk 12`,
      `zero ${A}.disk 8 12`,
      `tag ${A}.disk {"remove":"gnt:dirty-from=8"}`,
    ],
  ],
  ['of that size stays', {}, 8, []],
  ['of a larger size stays', {}, 4, []],
  ['of a pool is enlarged alone', { pool: 'thin' }, 12, [`extend ${A}.disk 12`]],
] as const) {
  test(`an enlarged volume ${what}`, async () => {
    const { volumes, calls, first } = await lab({ name: `${A}.disk`, ...volume });
    await volumes.extend(first, sizeBytes);
    assert.deepEqual(calls, expected);
  });
}

test('an administrator of a volume with snapshots is asked first', async () => {
  const snapshot = { name: 'daily', origin: `${A}.disk`, tags: [] };
  const { volumes, calls, first } = await lab({ name: `${A}.disk` }, snapshot);
  const conflict = { code: 'CONFLICT', hint: /lvremove xenvg\/daily/ };
  await assert.rejects(volumes.empty(first), conflict);
  await assert.rejects(volumes.extend(first, 12), conflict);
  await assert.rejects(volumes.remove(first), conflict);
  // The list that a caller has may be older than the snapshot.
  await assert.rejects(volumes.remove({ ...first, dependents: [] }), conflict);
  assert.deepEqual(calls, []);
});

test('a snapshot of another volume does not keep one from its removal', async () => {
  const snapshot = { name: 'daily', origin: `${B}.disk`, tags: [] };
  const { volumes, calls, first } = await lab(
    { name: `${A}.disk` },
    { name: `${B}.disk` },
    snapshot,
  );
  await volumes.remove(first);
  assert.deepEqual(calls, [`remove ${A}.disk`]);
});

test('a renamed volume has its new name and state', async () => {
  const { volumes, calls, first } = await lab({ name: `${A}.ready` });
  const renamed = await volumes.rename(first, { kind: 'disk' });
  assert.deepEqual([renamed.name, renamed.state], [`${A}.disk`, { kind: 'disk' }]);
  assert.deepEqual(calls, [`rename ${A}.ready ${A}.disk`]);
});

test('a clone has the tags of its instance; an inactive volume needs no sync', async () => {
  const { volumes, calls, first } = await lab({ name: `${A}.disk`, isActive: false });
  const state = { kind: 'snapshotting', snapshot: uuidOf(20) } as const;
  await volumes.clone(first, { state, isActive: false });
  assert.deepEqual(calls, [`clone ${A}.disk ${A}.snapshotting-${uuidOf(20)} false`]);
  assert.equal((await volumes.list(INSTANCE)).length, 2);
  // The sync of an active one opens its device, which is missing here.
  await assert.rejects(volumes.clone({ ...first, isActive: true }, { state, isActive: true }), {
    code: 'ENOENT',
  });
});

const RECORD = {
  ...{ disks: [{ uuid: A }], snapshots: [{ uuid: uuidOf(20) }] },
  ...{ currentIds: [], isDecided: true },
};
for (const [given, expected] of [
  [{ name: `${A}.ready` }, [`rename ${A}.ready ${A}.disk`]],
  [{ name: `${B}.leaving` }, [`remove ${B}.leaving`]],
  [{ name: `${A}.disk`, isActive: false }, [`activate ${A}.disk`]],
  [
    { name: `${A}.snapshotting-${uuidOf(20)}` },
    [`rename ${A}.snapshotting-${uuidOf(20)} ${A}.snapshot-${uuidOf(20)}`],
  ],
  [
    { name: `${A}.disk`, tags: [...TAGS, 'gnt:dirty-from=4'] },
    [`zero ${A}.disk 4 8`, `tag ${A}.disk {"remove":"gnt:dirty-from=4"}`],
  ],
  [{ name: `${A}.disk` }, []],
] as const) {
  test(`settling does: ${expected.join(', ') || 'nothing'}`, async () => {
    const { volumes, calls } = await lab(given);
    const changed = await volumes.settle(INSTANCE, RECORD);
    assert.deepEqual(calls, expected);
    assert.deepEqual(changed, expected.length === 0 ? [] : [given.name]);
  });
}

test('zeroing may go on after settling, and a second settling waits for it', async () => {
  const dirty = { name: `${A}.disk`, isActive: false, tags: [...TAGS, 'gnt:dirty-from=4'] };
  const memory = await lab(dirty);
  const gate = Promise.withResolvers<undefined>();
  const zero = memory.system.zero.bind(memory.system);
  const volumes = createOwnVolumes(
    {
      ...memory.system,
      zero: async (...given) => {
        await gate.promise;
        await zero(...given);
      },
    },
    HERE,
  );
  let zeroing: Promise<void> | undefined;
  await volumes.settle(INSTANCE, RECORD, (one) => {
    zeroing = one;
  });
  assert.deepEqual(memory.calls, [`activate ${A}.disk`]);
  let isOver = false;
  const again = volumes.settle(INSTANCE, RECORD).then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  assert.equal(isOver, false);
  gate.resolve(undefined);
  await Promise.all([again, zeroing]);
  assert.deepEqual(memory.calls.slice(1), [
    `zero ${A}.disk 4 8`,
    `tag ${A}.disk {"remove":"gnt:dirty-from=4"}`,
  ]);
});

test('volumes are not settled in a group that another node changes', async () => {
  const foreign = { name: `${B}.disk`, tags: [`gnt:instance=${uuidOf(2)}:g`, 'gnt:node=other'] };
  const { volumes, calls } = await lab({ name: `${A}.ready` }, foreign);
  await assert.rejects(volumes.settle(INSTANCE, RECORD), { code: 'CONFLICT' });
  assert.deepEqual(calls, []);
});

test('a disk whose size is not that of the record is refused with the command to end the grow', () => {
  const volume = { disk: A, state: { kind: 'disk' }, sizeBytes: 12 * MIB } as OwnVolume;
  const record = (mib: number) => ({ name: 'web1', disks: [disk({ sizeBytes: mib * MIB })] });
  requireRecordedSize(record(12), [volume]);
  requireRecordedSize(record(8), []);
  requireRecordedSize(record(8), [{ ...volume, disk: B }]);
  requireRecordedSize(record(8), [{ ...volume, state: { kind: 'new' } }]);
  assert.throws(() => requireRecordedSize(record(8), [volume]), {
    ...{ code: 'INSTANCE_STATE', hint: /grow-disk --absolute web1 0 12m$/ },
    message: "disk 0 of 'web1' has 12 MiB, but its record says 8 MiB",
  });
});
