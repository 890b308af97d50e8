import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  type BoundCommands,
  createBoundCommands,
} from '../../../../noded/storage/drivers/volumes/bound-commands.ts';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createZfs } from '../../../../noded/storage/drivers/zfs/zfs.ts';
import { SIZE, uuidOf } from './volume-suite.ts';
import {
  disk,
  disks,
  first,
  list,
  nothing,
  record,
  restore,
  snapshots,
  take,
  textOf,
  volumeNames,
  type Volumes,
  volumesOf,
  withSnapshots,
  write,
} from './zfs-scene.ts';

/** Stops all changes from the N-th on, as for a killed daemon. */
function cutAt(at: number): { readonly through: VolumeSystem; readonly changes: () => number } {
  let count = 0;
  const bound = createBoundCommands('ZFS');
  const commands: BoundCommands = {
    ...bound,
    change: async (...asked) => {
      if (count++ >= at) throw new Error('cut');
      return bound.change(...asked);
    },
  };
  return { through: createZfs(commands), changes: () => count };
}

interface Operation {
  /** Null without an instance. */
  readonly from: InstanceRecord | null;
  readonly to: InstanceRecord;
  readonly work: (all: Volumes, commit: () => Promise<void>) => Promise<unknown>;
  /** Content of the last disk before and after. */
  readonly texts: readonly [string, string];
}
const before = record([disk(11)]);
const kept = withSnapshots(before, first);
const grown = record([disk(11, 2 * SIZE)]);
const added = record([disk(11), disk(12)]);
const installed = { ...before, instanceId: uuidOf(3) };
const NONE = '\0'.repeat(6);
const operations: Readonly<Record<string, Operation>> = {
  create: {
    ...{ from: null, to: before, texts: [NONE, NONE] },
    work: async (all, commit) => {
      await commit();
      await all.disks.createEmpty(before);
    },
  },
  grow: {
    ...{ from: before, to: grown, texts: ['before', 'before'] },
    work: async (all, commit) => {
      await all.disks.grow(before, 0, 2 * SIZE);
      await commit();
    },
  },
  'adding a disk': {
    ...{ from: before, to: added, texts: ['before', 'before'] },
    work: (all, commit) => all.disks.change(before, added.disks, commit),
  },
  'taking a disk out': {
    ...{ from: added, to: before, texts: ['before', 'before'] },
    work: (all, commit) => all.disks.change(added, before.disks, commit),
  },
  reinstall: {
    ...{ from: before, to: installed, texts: ['before', 'after!'] },
    work: async (all, commit) => {
      using beside = all.disks.openForInstall(installed, { kind: 'beside', neededBytes: SIZE });
      await beside.create();
      await writeFile(beside.pathOf(0), 'after!', { flag: 'r+' });
      await beside.sync();
      await commit();
      await beside.takeOver();
    },
  },
  'taking a snapshot': {
    ...{ from: before, to: kept, texts: ['before', 'before'] },
    work: (all, commit) => take(all, before, first, commit),
  },
  'restoring one': {
    ...{ from: kept, to: { ...kept, restoreId: uuidOf(31) }, texts: ['before', 'kept!!'] },
    work: (all, commit) => restore(all, kept, uuidOf(31), commit),
  },
  'removing one': {
    ...{ from: kept, to: before, texts: ['before', 'before'] },
    work: (all, commit) => all.snapshots.remove(kept, first, commit),
  },
  remove: {
    ...{ from: kept, to: kept, texts: ['before', 'before'] },
    work: async (all, commit) => {
      await all.disks.remove(kept);
      await commit();
    },
  },
};

async function makeScene(from: InstanceRecord | null): Promise<void> {
  await disks.remove(before);
  assert.deepEqual(await list(), []);
  if (from === null) return;
  const plain = { ...from, snapshots: [] };
  await disks.createEmpty(plain);
  await write(plain, 'kept!!');
  if (from.snapshots.length > 0) await take({ disks, snapshots }, plain, first, nothing);
  await write(plain, 'before');
}

export function testKills(): void {
  for (const [name, { from, to, work, texts }] of Object.entries(operations)) {
    test(`a daemon that is killed between any two commands leaves a ${name} that can be ended`, async () => {
      let at = 0;
      for (let isEnded = false; !isEnded; at += 1) {
        await makeScene(from);
        let isCommitted = false;
        const { through, changes } = cutAt(at);
        const all = volumesOf(through);
        const done = work(all, () => {
          isCommitted = true;
          return Promise.resolve();
        });
        await done.catch((error: unknown) => {
          assert.ok(changes() > at, `it failed by itself: ${String(error)}`);
        });
        isEnded = changes() <= at;
        const current = isCommitted || from === null ? to : from;
        if (name === 'remove') {
          await disks.remove(current);
          assert.deepEqual(await list(), []);
          continue;
        }
        await disks.settle(current);
        if (name === 'create') await disks.createEmpty(current);
        await disks.activate(current);
        assert.equal(await textOf(current), texts[isCommitted ? 1 : 0]);
        const sets = 1 + current.snapshots.length;
        assert.equal(
          (await volumeNames()).length,
          sets * current.disks.length,
          String(await list()),
        );
        const pinned = (await list()).filter((one) => one.includes('.disk@'));
        if (current.snapshots.length === 0) assert.deepEqual(pinned, []);
        assert.deepEqual(await snapshots.listForgotten(current), []);
        assert.equal(await snapshots.isUnfinished(current.uuid), false);
      }
      process.stdout.write(`${name}: killed at ${at - 1} places\n`);
      await disks.remove(before);
      assert.deepEqual(await list(), []);
    });
  }
}
