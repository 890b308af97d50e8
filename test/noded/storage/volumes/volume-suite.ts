import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../../noded/storage/instance-disks.ts';
import type {
  VolumeSystem,
  Volume,
} from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { dirtyTag } from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import { instanceRecord } from '../../support/records.ts';

/** The environment of the volume tests. */
export interface VolumeLab {
  readonly lvm: VolumeSystem;
  /** The volume group of the test. */
  readonly group: string;
  /** The device of the group. */
  readonly device: string;
  readonly makeGroup: () => Promise<unknown>;
  /**
   * Makes a snapshot as an administrator does.
   * @returns a function that removes it
   */
  readonly snapshot: (
    made: Pick<Volume, 'group' | 'name' | 'sizeBytes'>,
    origin: string,
  ) => Promise<() => Promise<unknown>>;
  /** A folder of the test. */
  readonly folder: string;
  /** Node's arguments for a program that calls `runKilled` in this lab; `OPERATION N` follow. */
  readonly script: readonly string[];
}

type Disk = InstanceRecord['disks'][number];
type Named = Pick<Parameters<VolumeSystem['remove']>[0], 'name'>;

export const HERE = {
  nodeName: 'node1',
  owns: (node: string): boolean => node === 'node1',
  loadPlace: () => Promise.resolve('xenvg'),
};
const OLD = 'OLDTENANT';
export const SIZE = 4 * MIB;
const PATTERN = Buffer.alloc(MIB, `${OLD}\n`);

export const uuidOf = (n: number): string =>
  `${String(n).padStart(8, '0')}-0000-4000-8000-000000000000`;

/** @param pool for thin disks; undefined for thick ones */
export function planSamples(group: string, pool?: string) {
  const disk = (n: number, sizeBytes = SIZE): Disk => ({
    ...{ uuid: uuidOf(n), name: null, sizeBytes, vg: group },
    ...(pool !== undefined && { pool }),
  });
  const record = (disks: readonly Disk[]): InstanceRecord => ({
    ...instanceRecord({ name: 'web1' }),
    ...{ uuid: uuidOf(1), instanceId: uuidOf(2), diskTemplate: 'plain', installState: 'installed' },
    disks: [...disks],
  });
  const before = record([disk(10), disk(11)]);
  return {
    ...{ disk, record, before },
    grown: record([disk(10), disk(11, 2 * SIZE)]),
    added: record([disk(10), disk(11), disk(12)]),
    removed: record([disk(11)]),
    installed: { ...before, instanceId: uuidOf(3) },
  };
}

interface Operation {
  readonly from: InstanceRecord | null;
  readonly to: InstanceRecord;
  readonly work: (disks: InstanceDisks, commit: () => Promise<void>) => Promise<unknown>;
}

/** Returns operations with the record before and after their commit. */
function planOperations(group: string): Readonly<Record<string, Operation>> {
  const { before, grown, added, removed, installed } = planSamples(group);
  return {
    create: {
      ...{ from: null, to: before },
      work: async (disks, commit) => {
        await commit();
        await disks.createEmpty(before);
      },
    },
    grow: {
      ...{ from: before, to: grown },
      work: async (disks, commit) => {
        await disks.grow(before, 1, 2 * SIZE);
        await commit();
      },
    },
    'adding a disk': {
      ...{ from: before, to: added },
      work: (disks, commit) => disks.change(before, added.disks, commit),
    },
    'taking a disk out': {
      ...{ from: before, to: removed },
      work: (disks, commit) => disks.change(before, removed.disks, commit),
    },
    reinstall: {
      ...{ from: before, to: installed },
      work: async (disks, commit) => {
        using beside = disks.openForInstall(installed, { kind: 'beside', neededBytes: 2 * SIZE });
        await beside.create();
        await writeFile(beside.pathOf(1), 'after!', { flag: 'r+' });
        await beside.sync();
        await commit();
        await beside.takeOver();
      },
    },
  };
}

function disksOf({ folder }: VolumeLab, lvm: VolumeSystem): InstanceDisks {
  return createInstanceDisks(join(folder, 'disks'), { plain: { system: lvm, ...HERE } });
}

const committedIn = ({ folder }: VolumeLab): string => join(folder, 'committed');

/** Exits before the N-th change of a volume, as by `kill -9`: nothing is undone. */
export async function runKilled(lab: VolumeLab, operation: string, at: number): Promise<void> {
  let count = 0;
  const step =
    <Args extends readonly unknown[]>(work: (...args: Args) => Promise<void>) =>
    (...args: Args): Promise<void> => {
      if (count++ === at) process.kill(process.pid, 'SIGKILL');
      return work(...args);
    };
  const { lvm } = lab;
  const killed: VolumeSystem = {
    ...lvm,
    create: step((volume) => lvm.create(volume)),
    extend: step((volume, sizeBytes) => lvm.extend(volume, sizeBytes)),
    rename: step((volume, name) => lvm.rename(volume, name)),
    remove: step((volume) => lvm.remove(volume)),
    activate: step((volume) => lvm.activate(volume)),
    tag: step((volume, change) => lvm.tag(volume, change)),
    zero: step((volume, from, to) => lvm.zero(volume, from, to)),
  };
  const { work } = planOperations(lab.group)[operation] ?? assert.fail(operation);
  await work(disksOf(lab, killed), () => writeFile(committedIn(lab), ''));
}

/** Fills the free extents with a former tenant's bytes. */
export async function soil({ lvm, group }: VolumeLab): Promise<void> {
  const former = { group, name: 'former' };
  const [found] = (await lvm.listGroups()).filter(({ name }) => name === group);
  await lvm.create({ ...former, sizeBytes: found?.freeBytes ?? 0, tags: [] });
  await fill(`/dev/${group}/former`);
  await lvm.remove(former);
}

async function fill(path: string): Promise<void> {
  await using file = await open(path, 'r+');
  for (let isFull = false; !isFull;) {
    const written = await file.write(PATTERN).catch(() => ({ bytesWritten: 0 }));
    isFull = written.bytesWritten < PATTERN.length;
  }
  await file.sync();
}

/** Checks the content of the device, not of the page cache. */
export async function assertClean(path: string): Promise<void> {
  await run('blockdev', ['--flushbufs', path]);
  assert.equal((await readFile(path)).includes(OLD), false, `${path}: a former tenant's bytes`);
}

export function testVolumes(lab: VolumeLab): InstanceDisks {
  const { lvm, group, device } = lab;
  const disks = disksOf(lab, lvm);
  const { before, disk, record } = planSamples(group);
  const list = async (): Promise<readonly string[]> =>
    (await lvm.listVolumes()).map(({ name }) => name).toSorted();
  const namesOf = (instance: InstanceRecord): readonly string[] =>
    instance.disks.map(({ uuid }) => `${uuid}.disk`);
  const others = ['precious'];
  const text = async (path: string): Promise<string> =>
    (await readFile(path)).toString('latin1', 0, 6);
  const inGroup = (name: string): Named & { readonly group: string } => ({ group, name });

  test('a group has volumes of others, and extents that still hold what was there', async () => {
    await mkdir(join(lab.folder, 'disks'));
    await fill(device);
    await lab.makeGroup();
    await lvm.create({ ...inGroup('precious'), sizeBytes: 4 * MIB, tags: [] });
    await writeFile(`/dev/${group}/precious`, 'others', { flag: 'r+' });
    await soil(lab);
    await lvm.create({ ...inGroup('control'), sizeBytes: 4 * MIB, tags: [] });
    await assert.rejects(assertClean(`/dev/${group}/control`), /former tenant/);
    await lvm.remove(inGroup('control'));
  });

  test('what is no whole extents, or more than is free, is refused before anything changes', async () => {
    const check = (sizeBytes: number, vg = group): Promise<void> =>
      disks.checkSizes([{ ...disk(10, sizeBytes), vg }], before);
    await assert.rejects(check(SIZE + 512), { code: 'VALIDATION' });
    await assert.rejects(check(4096 * MIB), { code: 'DISK_SPACE' });
    await assert.rejects(check(SIZE, 'other'), { code: 'HOST_PREREQUISITE' });
    await disks.checkSizes(before.disks, before);
    assert.deepEqual(await list(), others);
  });

  for (const [operation, { from, to }] of Object.entries(planOperations(group))) {
    const judge = async (current: InstanceRecord, isCommitted: boolean): Promise<void> => {
      await disks.settle(current);
      if (operation === 'create') await disks.createEmpty(current);
      assert.deepEqual(await list(), [...namesOf(current), ...others]);
      for (const index of current.disks.keys()) await assertClean(disks.pathOf(current, index));
      const kept = disks.pathOf(current, operation === 'taking a disk out' && isCommitted ? 0 : 1);
      const expected = operation === 'reinstall' && isCommitted ? 'after!' : 'before';
      if (operation !== 'create') assert.equal(await text(kept), expected);
    };
    test(`a daemon that is killed at any step of it leaves a ${operation} that can be ended`, async () => {
      for (let at = 0; ; at += 1) {
        await disks.remove(before);
        await soil(lab);
        if (from !== null) {
          await disks.createEmpty(from);
          await writeFile(disks.pathOf(from, 1), 'before', { flag: 'r+' });
          await soil(lab);
        }
        await rm(committedIn(lab), { force: true });
        const ended = spawnSync(process.execPath, [...lab.script, operation, `${at}`]);
        const isKilled = ended.signal === 'SIGKILL';
        if (!isKilled) assert.equal(ended.status, 0, String(ended.stderr));
        const isCommitted = existsSync(committedIn(lab));
        assert.ok(isKilled || isCommitted);
        await judge(isCommitted || from === null ? to : from, isCommitted);
        if (!isKilled) return assert.ok(at > 0, 'nothing was killed');
      }
    });
  }

  test('who has a volume open keeps it, and a disk is emptied, grown and held by nobody else', async () => {
    await disks.remove(before);
    await soil(lab);
    await disks.createEmpty(before);
    {
      await using held = await disks.hold(before);
      void held;
      await assert.rejects(disks.checkUnused(before), { code: 'DISK_IN_USE' });
      await assert.rejects(disks.createEmpty(before), { code: 'DISK_IN_USE' });
      await assert.rejects(disks.remove(before), { code: 'DISK_IN_USE' });
    }
    await disks.grow(before, 1, 2 * SIZE);
    await assertClean(disks.pathOf(before, 1));
    await assert.rejects(disks.hold(before), { code: 'INSTANCE_STATE' });
    await writeFile(disks.pathOf(before, 1), 'before', { flag: 'r+' });
    await disks.createEmpty(before);
    assert.equal(await text(disks.pathOf(before, 1)), '\0'.repeat(6));
  });

  test('a start waits for no zeros that a killed daemon owes; who uses the disk next does', async () => {
    await disks.remove(before);
    await disks.createEmpty(before);
    const uses: Readonly<Record<string, (used: InstanceDisks) => Promise<unknown>>> = {
      hold: async (used) => (await used.hold(before))[Symbol.asyncDispose](),
      settle: (used) => used.settle(before),
      remove: (used) => used.remove(before),
    };
    for (const [name, use] of Object.entries(uses)) {
      await lvm.tag(inGroup(`${uuidOf(11)}.disk`), { add: dirtyTag(0) });
      await writeFile(disks.pathOf(before, 1), OLD, { flag: 'r+' });
      const gate = Promise.withResolvers<void>();
      const slow: VolumeSystem = {
        ...lvm,
        zero: async (...place) => {
          await gate.promise;
          await lvm.zero(...place);
        },
      };
      const started = disksOf(lab, slow);
      const order: string[] = [];
      const zeroings: Promise<unknown>[] = [];
      await started.settle(before, (zeroing) => {
        zeroings.push(zeroing.then(() => void order.push('zeroed')));
      });
      order.push('started');
      const using = use(started).then(() => void order.push(name));
      // Without waiting, the operation would end meanwhile.
      for (let look = 0; look < 3; look += 1) await lvm.listVolumes();
      gate.resolve();
      await Promise.all([using, ...zeroings]);
      assert.deepEqual(order, ['started', 'zeroed', name]);
      if (name !== 'remove') await assertClean(disks.pathOf(before, 1));
    }
  });

  test("an administrator's snapshots of a disk stay: what LVM would remove with them is refused", async () => {
    await disks.remove(before);
    await disks.createEmpty(before);
    const [first] = namesOf(before);
    const snapshot = { ...inGroup('kept'), sizeBytes: SIZE, tags: [] };
    const remove = await lab.snapshot(snapshot, first ?? '');
    const refused = { code: 'CONFLICT', hint: new RegExp(`lvremove ${group}/kept`) };
    const there = await list();
    let isBegun = false;
    const begin = (): Promise<void> => {
      isBegun = true;
      return Promise.resolve();
    };
    await assert.rejects(disks.remove(before, begin), refused);
    await assert.rejects(disks.change(before, [disk(11)], begin), refused);
    await assert.rejects(disks.grow(before, 0, 2 * SIZE), refused);
    await assert.rejects(disks.roomBeside(before, 0), refused);
    await assert.rejects(disks.checkOverwrite(before), refused);
    assert.equal(isBegun, false);
    assert.deepEqual(await list(), there);
    await remove();
    await disks.remove(before);
  });

  test('a group that another node changes too is refused, by its volumes', async () => {
    await disks.createEmpty(before);
    const other = { ...HERE, nodeName: 'node2', owns: (node: string): boolean => node === 'node2' };
    const plain = { system: lvm, ...other };
    const elsewhere = createInstanceDisks(join(lab.folder, 'disks'), { plain });
    const refused = { code: 'CONFLICT', message: /volumes of the node node1/ };
    await assert.rejects(elsewhere.checkSizes([disk(12)], before), refused);
    await assert.rejects(elsewhere.settle(before), refused);
    await disks.checkSizes([disk(12)], before);
  });

  test('one whose device is gone is told by name, and one that no record has stays', async () => {
    await disks.remove(before);
    await disks.createEmpty(before);
    await lvm.remove(inGroup(`${uuidOf(10)}.disk`));
    await assert.rejects(disks.hold(before), { code: 'DISK_MISSING' });
    await disks.settle(record([disk(10)]));
    assert.deepEqual(await list(), [`${uuidOf(11)}.disk`, ...others]);
  });

  test('nothing is left at the end, and what is of others is as it was', async () => {
    await disks.remove({ uuid: before.uuid });
    assert.deepEqual(await list(), others);
    assert.equal(await text(`/dev/${group}/precious`), 'others');
  });
  return disks;
}
