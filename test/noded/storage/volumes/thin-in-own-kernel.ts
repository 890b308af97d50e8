import assert from 'node:assert/strict';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../../noded/storage/instance-disks.ts';
import type { SnapshotDisks } from '../../../../noded/storage/snapshot-disks.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { findPools } from '../../../../noded/storage/drivers/volumes/thin-pools.ts';
import { createSeededRandom } from '../../../lab/seeded-random.ts';
import { testSeed } from '../../../lab/test-seed.ts';
import { UNWATCHED } from '../../support/unwatched.ts';
import { assertClean, HERE, planSamples, SIZE, uuidOf } from './volume-suite.ts';

/** Runs in the machine of thin-volumes.long.test.ts, with an empty disk. */
const GROUP = 'xenvg';
const POOL = 'pool';
const POOL_BYTES = 64 * MIB;
const folder = '/run/thin';
const lvm = createLvm();
const { before, disk, record } = planSamples(GROUP, POOL);
const [first, second] = [uuidOf(20), uuidOf(21)];

interface Volumes {
  readonly disks: InstanceDisks;
  readonly snapshots: SnapshotDisks;
}

function volumesOf(through: VolumeSystem): Volumes {
  const disksDir = join(folder, 'disks');
  const disks = createInstanceDisks(disksDir, { plain: { system: through, ...HERE } });
  return { disks, snapshots: disks.snapshots };
}
const { disks, snapshots } = volumesOf(lvm);

const withSnapshot = (instance: InstanceRecord, uuid: string): InstanceRecord => ({
  ...instance,
  snapshots: [
    ...instance.snapshots,
    {
      ...{ uuid, name: uuid.slice(0, 8), takenAtMs: 0, wasRunning: false, hostKeys: null },
      ...{ instanceId: instance.instanceId, installState: 'installed', disks: instance.disks },
    },
  ],
});
const nothing = (): Promise<void> => Promise.resolve();
const write = (instance: InstanceRecord, text: string): Promise<void> =>
  writeFile(disks.pathOf(instance, 1), text, { flag: 'r+' });
const read = async (instance: InstanceRecord): Promise<string> => {
  await run('blockdev', ['--flushbufs', disks.pathOf(instance, 1)]);
  await using file = await open(disks.pathOf(instance, 1));
  return (await file.read({ length: 6 })).buffer.toString('latin1', 0, 6);
};
const list = async (): Promise<readonly string[]> =>
  (await lvm.listVolumes()).map(({ name }) => name.slice(0, 22)).toSorted();

/** Fills the free part of the pool with a former tenant's data. */
async function soil(): Promise<void> {
  const [pool] = findPools(await lvm.listVolumes());
  const sizeBytes = Math.floor(((pool?.freeBytes ?? 0) * 0.9) / SIZE) * SIZE;
  await lvm.create({ group: GROUP, name: 'former', sizeBytes, tags: [], pool: POOL });
  const path = `/dev/${GROUP}/former`;
  await run('dd', ['if=/run/former', `of=${path}`, 'bs=1M', `count=${sizeBytes / MIB}`]);
  await run('blockdev', ['--flushbufs', path]);
  await lvm.remove({ group: GROUP, name: 'former' });
}

test('a thin pool is there', async () => {
  await mkdir(join(folder, 'disks'), { recursive: true });
  await writeFile('/run/former', Buffer.alloc(POOL_BYTES, 'OLDTENANT\n'));
  await run('vgcreate', ['--yes', GROUP, '/dev/ubda']);
  await assert.rejects(disks.checkSizes(before.disks, before), {
    code: 'HOST_PREREQUISITE',
    message: "this node has no thin pool 'xenvg/pool'",
  });
  const how = ['--type', 'thin-pool', '--size', `${POOL_BYTES}b`, '--zero', 'n'];
  await run('lvcreate', ['--yes', ...how, '--name', POOL, GROUP]);
});

test('one that gives away what others wrote is refused, with what to do', async () => {
  const refused = { code: 'HOST_PREREQUISITE', hint: 'lvchange --zero y xenvg/pool' };
  await assert.rejects(disks.checkSizes(before.disks, before), refused);
  await assert.rejects(disks.createEmpty(before), refused);
  await run('lvchange', ['--zero', 'y', `${GROUP}/${POOL}`]);
});

test('disks are larger together than the pool, take nothing, and hold nothing of others', async () => {
  await soil();
  const large = record([disk(10, 1024 * MIB), disk(11, 1024 * MIB)]);
  await disks.checkSizes(large.disks, large);
  await disks.createEmpty(large);
  await write(large, 'before');
  for (const index of [0, 1]) {
    await using file = await open(disks.pathOf(large, index));
    const { buffer } = await file.read({ buffer: Buffer.alloc(MIB), position: 0 });
    assert.equal(buffer.includes('OLDTENANT'), false);
  }
  const [pool] = findPools(await lvm.listVolumes());
  assert.ok(pool !== undefined && pool.usedShare < 0.2, `full to ${pool?.usedShare}`);
  assert.equal(await disks.isPoolFull(large), false);
  await disks.remove(large);
  assert.deepEqual(await list(), [POOL]);
});

test('a disk is grown, emptied and reinstalled without what was there', async () => {
  await disks.createEmpty(before);
  await write(before, 'before');
  await disks.grow(before, 1, 2 * SIZE);
  const grown = record([disk(10), disk(11, 2 * SIZE)]);
  await assertClean(disks.pathOf(grown, 1));
  assert.equal((await readFile(disks.pathOf(grown, 1))).length, 2 * SIZE);
  assert.equal(await read(grown), 'before');
  const installed = { ...grown, instanceId: uuidOf(3) };
  assert.equal((await disks.roomBeside(grown, MIB)).isEnough, true);
  {
    using beside = disks.openForInstall(installed, { kind: 'beside', neededBytes: MIB });
    await beside.create();
    await writeFile(beside.pathOf(1), 'after!', { flag: 'r+' });
    await beside.sync();
    await beside.takeOver();
  }
  assert.equal(await read(installed), 'after!');
  await disks.createEmpty(installed);
  assert.equal(await read(installed), '\0'.repeat(6));
  await disks.remove(installed);
});

test('a snapshot is of one moment, is restored, and goes with what it kept', async () => {
  await disks.createEmpty(before);
  await write(before, 'before');
  await snapshots.check(before, true);
  const seen: string[] = [];
  const machine = {
    isRunning: () => true,
    pause: async () => void seen.push('pause'),
    resume: async () => void seen.push('resume'),
  };
  const { stillMs } = await snapshots.take(before, first, {
    ...UNWATCHED,
    mayCopy: true,
    machine,
    commit: async () => void seen.push('commit'),
  });
  process.stdout.write(`the guest stood still for ${Math.round(stillMs)} ms\n`);
  assert.deepEqual(seen, ['pause', 'resume', 'commit']);
  assert.equal(await snapshots.isUnfinished(before.uuid), false);
  const kept = withSnapshot(before, first);
  await write(kept, 'after!');
  const [snapshot] = kept.snapshots;
  assert.ok(snapshot);
  await disks.grow(kept, 1, 2 * SIZE);
  const grown = { ...kept, disks: [disk(10), disk(11, 2 * SIZE)] };
  await snapshots.restore(grown, snapshot, {
    ...UNWATCHED,
    restoreId: uuidOf(30),
    commit: nothing,
  });
  assert.equal(await read(kept), 'before');
  assert.equal((await readFile(disks.pathOf(kept, 1))).length, SIZE);
  assert.deepEqual(await snapshots.listForgotten(kept), []);
  assert.equal((await snapshots.listForgotten(before)).length, 2);
  await snapshots.remove(kept, first, nothing);
  assert.equal((await list()).length, 3);
  await disks.remove(before);
  assert.deepEqual(await list(), [POOL]);
});

test('disks of extents of their own have none', async () => {
  const thick = record([disk(10), { ...disk(11), pool: undefined }]);
  await assert.rejects(snapshots.check(thick, true), {
    code: 'NOT_SUPPORTED',
    message: /^disk 1 of/,
  });
});

/** Stops all changes from the N-th on, as for a killed daemon. */
function cutAt(at: number): { readonly through: VolumeSystem; readonly changes: () => number } {
  let count = 0;
  const changes = ['create', 'clone', 'extend', 'rename', 'remove', 'activate', 'tag', 'zero'];
  const through = new Proxy(lvm, {
    get: (target, name: keyof VolumeSystem) => {
      const work: unknown = Reflect.get(target, name);
      if (!changes.includes(name)) return work;
      return async (...args: unknown[]) => {
        if (count++ >= at) throw new Error('cut');
        return (work as (...args: unknown[]) => Promise<unknown>)(...args);
      };
    },
  });
  return { through, changes: () => count };
}

interface Step {
  readonly from: InstanceRecord;
  readonly to: InstanceRecord;
  readonly work: (volumes: Volumes, commit: () => Promise<void>) => Promise<unknown>;
  /** Content of the second disk before and after. */
  readonly texts: readonly [string, string];
}
const kept = withSnapshot(before, first);
const steps: Readonly<Record<string, Step>> = {
  'taking a snapshot': {
    ...{ from: kept, to: withSnapshot(kept, second), texts: ['after!', 'after!'] },
    work: (all, commit) =>
      all.snapshots.take(kept, second, { ...UNWATCHED, mayCopy: true, machine: undefined, commit }),
  },
  'restoring one': {
    ...{ from: kept, to: { ...kept, restoreId: uuidOf(31) }, texts: ['after!', 'before'] },
    work: (all, commit) =>
      all.snapshots.restore(kept, kept.snapshots[0] ?? assert.fail(), {
        ...UNWATCHED,
        ...{ restoreId: uuidOf(31), commit },
      }),
  },
  'removing one': {
    ...{ from: kept, to: before, texts: ['after!', 'after!'] },
    work: (all, commit) => all.snapshots.remove(kept, first, commit),
  },
};

/** Makes an instance with a snapshot whose content differs from its disks. */
async function makeKept(): Promise<void> {
  await disks.createEmpty(before);
  await write(before, 'before');
  await snapshots.take(before, first, {
    ...UNWATCHED,
    mayCopy: true,
    machine: undefined,
    commit: nothing,
  });
  await write(before, 'after!');
}

/** Each cut takes seconds here. */
const CUTS = 3;

for (const [name, { from, to, work, texts }] of Object.entries(steps)) {
  test(`a daemon that ends in the middle of ${name} leaves what can be ended`, async (t) => {
    const workUntil = async (at: number): Promise<{ changes: number; isCommitted: boolean }> => {
      let isCommitted = false;
      const { through, changes } = cutAt(at);
      const commit = (): Promise<void> => {
        isCommitted = true;
        return Promise.resolve();
      };
      await work(volumesOf(through), commit).catch(() => undefined);
      const current = isCommitted ? to : from;
      await disks.settle(current);
      assert.equal((await list()).length, 1 + 2 * (1 + current.snapshots.length));
      assert.equal(await read(current), texts[isCommitted ? 1 : 0]);
      assert.deepEqual(await snapshots.listForgotten(current), []);
      assert.equal(await snapshots.isUnfinished(current.uuid), false);
      // A step that was cut before its commit left the instance unchanged for the next one.
      if (isCommitted) await disks.remove(current);
      return { changes: changes(), isCommitted };
    };
    await makeKept();
    const { changes, isCommitted } = await workUntil(Number.POSITIVE_INFINITY);
    assert.ok(isCommitted && changes > CUTS);
    const random = createSeededRandom(testSeed(t));
    const cuts = new Set<number>();
    while (cuts.size < CUTS) cuts.add(random.below(changes));
    let isThere = false;
    for (const at of cuts) {
      if (!isThere) await makeKept();
      isThere = !(await workUntil(at)).isCommitted;
    }
    if (isThere) await disks.remove(from);
  });
}

test('a pool that is full takes nothing new, and a guest that it stopped waits', async () => {
  await run('lvchange', ['--errorwhenfull', 'y', `${GROUP}/${POOL}`]);
  const large = record([disk(10, 128 * MIB), disk(11)]);
  await disks.createEmpty(large);
  await run('dd', ['if=/run/former', `of=${disks.pathOf(large, 0)}`, 'bs=1M', 'count=63']);
  assert.equal(await disks.isPoolFull(large), true);
  await assert.rejects(snapshots.check(large, true), {
    code: 'DISK_SPACE',
    hint: /lvextend .*xenvg\/pool/,
  });
  await assert.rejects(disks.checkSizes([disk(12)], large), { code: 'DISK_SPACE' });
  await disks.remove(large);
  assert.equal(await disks.isPoolFull(large), null);
  await disks.checkSizes(before.disks, before);
});
