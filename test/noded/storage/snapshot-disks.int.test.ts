import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import type { InstanceRecord, InstanceSnapshot } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { planRestore } from '../../../noded/operations/snapshots.ts';
import { UNWATCHED } from '../support/unwatched.ts';
import { FakeMachine } from '../support/fake-machine.ts';
import { instanceRecord } from '../support/records.ts';

const WITHOUT_LOOPS = !existsSync('/dev/loop3') && 'this host has no loop devices';
const SIZE = 32 * MIB;
const killed = new Error('the daemon was killed here');

let top = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-snapshots-'));
});
after(() => rm(top, { recursive: true, force: true }));

/** Creates an instance with two disks below a folder. Its record follows the commits. */
async function createInstance(disksDir: string, mayCopy = true) {
  const disks = createInstanceDisks(disksDir);
  const { snapshots } = disks;
  const made = instanceRecord({ disks: [{ sizeBytes: SIZE }, { sizeBytes: SIZE }] });
  let record: InstanceRecord = { ...made, uuid: randomUUID(), installState: 'installed' };
  const dir = join(disksDir, record.uuid);
  await disks.createEmpty(record);
  const write = async (text: string): Promise<void> => {
    for (const index of [0, 1]) {
      await using file = await open(disks.pathOf(record, index), 'r+');
      await file.write(`${text}${index}`, 0);
    }
  };
  const read = (): Promise<readonly string[]> =>
    Promise.all(
      [0, 1].map(async (index) => {
        await using file = await open(disks.pathOf(record, index));
        const { buffer } = await file.read({ buffer: Buffer.alloc(4) });
        return buffer.toString();
      }),
    );
  const plan = (): InstanceSnapshot => {
    const { instanceId, disks: parts } = record;
    const named = {
      uuid: randomUUID(),
      name: 's',
      takenAtMs: 0,
      wasRunning: false,
      hostKeys: null,
    };
    return { ...named, instanceId, installState: 'installed', disks: parts };
  };
  const commit = (next: (current: InstanceRecord) => InstanceRecord) => () => {
    record = next(record);
    return Promise.resolve();
  };
  const add = (snapshot: InstanceSnapshot) =>
    commit((current) => ({ ...current, snapshots: [...current.snapshots, snapshot] }));
  return {
    ...{ disks, snapshots, dir, write, read, plan, commit, add },
    record: () => record,
    settle: () => disks.settle(record),
    list: async () => (await readdir(dir)).sort(),
    take: async (machine?: FakeMachine, signal = UNWATCHED.signal) => {
      const snapshot = plan();
      await snapshots.check(record, mayCopy);
      const watch = { ...UNWATCHED, signal, mayCopy };
      await snapshots.take(record, snapshot.uuid, { ...watch, machine, commit: add(snapshot) });
      return snapshot;
    },
    restore: async (snapshot: InstanceSnapshot) => {
      const restoreId = randomUUID();
      await snapshots.checkRestore(record, snapshot);
      await snapshots.restore(record, snapshot, {
        ...UNWATCHED,
        restoreId,
        commit: commit((current) => planRestore(current, snapshot, restoreId)),
      });
    },
  };
}

for (const kind of ['btrfs', 'xfs', 'ext4']) {
  describe(kind, { skip: WITHOUT_LOOPS }, () => {
    let disksDir = '';
    before(async () => {
      const image = join(top, `${kind}.img`);
      await writeFile(image, '');
      await truncate(image, GIB / 2);
      await run(`mkfs.${kind}`, ['-q', image]);
      disksDir = join(top, kind);
      await mkdir(disksDir);
      await run('mount', ['-o', 'loop', image, disksDir]);
    });
    after(() => run('umount', [disksDir]));

    test('a snapshot keeps what the disks hold, and they are what they were when it is restored', async () => {
      const { write, read, take, restore, list, dir, record } = await createInstance(disksDir);
      await write('old');
      const snapshot = await take();
      await write('new');
      const kept = join(dir, `snapshot-${snapshot.uuid}`);
      assert.equal((await readFile(join(kept, 'disk1.raw'))).subarray(0, 4).toString(), 'old1');
      assert.deepEqual(
        [(await stat(kept)).mode & 0o777, (await stat(join(kept, 'disk0.raw'))).mode & 0o777],
        [0o700, 0o600],
      );
      await restore(snapshot);
      assert.deepEqual(await read(), ['old0', 'old1']);
      await write('own');
      await restore(snapshot);
      assert.deepEqual(await read(), ['old0', 'old1'], 'it stays, and nobody writes to it');
      assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw', `snapshot-${snapshot.uuid}`]);
      assert.equal(record().snapshots.length, 1);
    });

    test('a disk that grew since has its former size', async () => {
      const { take, restore, disks, record, commit } = await createInstance(disksDir);
      const snapshot = await take();
      await disks.grow(record(), 1, 2 * SIZE);
      await commit((current) => ({
        ...current,
        disks: current.disks.map((disk) => ({ ...disk, sizeBytes: 2 * SIZE })),
      }))();
      await restore(snapshot);
      assert.equal((await stat(disks.pathOf(record(), 1))).size, SIZE);
      assert.deepEqual(
        record().disks.map(({ sizeBytes }) => sizeBytes),
        [SIZE, SIZE],
      );
    });

    test('one of a guest that runs is taken while it stands still, and it goes on', async () => {
      const { take, list } = await createInstance(disksDir);
      const machine = new FakeMachine();
      let during: readonly string[] = [];
      machine.resume = async () => {
        during = await list();
        machine.resumes += 1;
      };
      const { uuid } = await take(machine);
      assert.deepEqual([machine.pauses, machine.resumes], [1, 1]);
      // This folder tells a later daemon that the guest may be paused.
      assert.ok(during.includes(`snapshotting-${uuid}`), during.join());
    });

    test('a guest goes on when its disks cannot be cloned, and nothing is left', async () => {
      const { take, list, dir } = await createInstance(disksDir);
      const machine = new FakeMachine();
      machine.pause = () => rename(join(dir, 'disk1.raw'), join(dir, 'elsewhere'));
      await assert.rejects(take(machine), { code: 'ENOENT' });
      assert.equal(machine.resumes, 1);
      assert.deepEqual(await list(), ['disk0.raw', 'elsewhere']);
    });

    test('a guest that cannot be told to go on is left to the next daemon', async () => {
      const { take, snapshots, record } = await createInstance(disksDir);
      const machine = new FakeMachine();
      machine.resume = () => Promise.reject(new Error('nobody answers'));
      await assert.rejects(take(machine), { code: 'QMP' });
      assert.equal(await snapshots.isUnfinished(record().uuid), true);
    });

    test('killed while one is taken: the record says whether it is there', async () => {
      const { snapshots, plan, add, settle, list, record } = await createInstance(disksDir);
      const [lost, kept] = [plan(), plan()];
      const beforeIt = () => Promise.reject(killed);
      await assert.rejects(
        snapshots.take(record(), lost.uuid, {
          ...UNWATCHED,
          mayCopy: true,
          machine: undefined,
          commit: beforeIt,
        }),
        killed,
      );
      const behindIt = async () => {
        await add(kept)();
        throw killed;
      };
      await assert.rejects(
        snapshots.take(record(), kept.uuid, {
          ...UNWATCHED,
          mayCopy: true,
          machine: undefined,
          commit: behindIt,
        }),
        killed,
      );
      assert.equal(await snapshots.isUnfinished(record().uuid), true);
      await settle();
      assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw', `snapshot-${kept.uuid}`]);
      assert.deepEqual(await settle(), []);
    });

    test('killed while one is restored: the record says whose disks they are', async () => {
      const { take, write, read, settle, snapshots, record, commit, list } =
        await createInstance(disksDir);
      await write('old');
      const snapshot = await take();
      await write('new');
      const restoreId = randomUUID();
      const how = { ...UNWATCHED, restoreId, commit: () => Promise.reject(killed) };
      await assert.rejects(snapshots.restore(record(), snapshot, how), killed);
      assert.deepEqual(await read(), ['new0', 'new1']);
      await settle();
      assert.deepEqual(await read(), ['new0', 'new1']);
      assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw', `snapshot-${snapshot.uuid}`]);
      const behindIt = async () => {
        await commit((current) => planRestore(current, snapshot, restoreId))();
        throw killed;
      };
      await assert.rejects(
        snapshots.restore(record(), snapshot, { ...UNWATCHED, restoreId, commit: behindIt }),
        killed,
      );
      await settle();
      assert.deepEqual(await read(), ['old0', 'old1']);
    });

    test('killed while one is removed: the record says whether it is there', async () => {
      const { take, snapshots, settle, list, record, commit } = await createInstance(disksDir);
      const { uuid } = await take();
      await assert.rejects(
        snapshots.remove(record(), uuid, () => Promise.reject(killed)),
        killed,
      );
      await settle();
      assert.ok((await list()).includes(`snapshot-${uuid}`));
      const forget = commit((current) => ({ ...current, snapshots: [] }));
      await assert.rejects(
        snapshots.remove(record(), uuid, () => forget().then(() => Promise.reject(killed))),
        killed,
      );
      await settle();
      assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
    });

    test('one that a store has forgotten stays where it is, and is named', async () => {
      const { take, settle, list, commit, snapshots, record } = await createInstance(disksDir);
      const { uuid } = await take();
      await take();
      assert.deepEqual(await snapshots.listForgotten(record()), []);
      await commit((current) => ({ ...current, snapshots: current.snapshots.slice(1) }))();
      await settle();
      assert.ok((await list()).includes(`snapshot-${uuid}`));
      assert.deepEqual(await snapshots.listForgotten(record()), [
        `${record().uuid}/snapshot-${uuid}`,
      ]);
    });

    test('disks that somebody has open are neither kept nor replaced', async (t) => {
      const { take, restore, disks, record } = await createInstance(disksDir);
      const snapshot = await take();
      const held = await holdElsewhere(disks.pathOf(record(), 0), t);
      await assert.rejects(take(), { code: 'DISK_IN_USE' });
      await assert.rejects(restore(snapshot), { code: 'DISK_IN_USE' });
      await held();
      await restore(snapshot);
    });

    test('a removed instance takes its snapshots along', async () => {
      const { take, disks, record, dir } = await createInstance(disksDir);
      await take();
      await disks.remove(record());
      assert.equal(existsSync(dir), false);
    });

    test('a full file system refuses', async () => {
      const { take, list, write, read } = await createInstance(disksDir);
      await write('old');
      const filler = join(disksDir, 'filler');
      const { bavail, bsize } = await statfs(disksDir);
      await run('fallocate', ['--length', String(bavail * bsize - 48 * MIB), filler]);
      try {
        await assert.rejects(take(), { code: 'DISK_SPACE' });
      } finally {
        await rm(filler);
      }
      assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
      assert.deepEqual(await read(), ['old0', 'old1']);
    });
  });
}

describe('where blocks cannot be shared', { skip: WITHOUT_LOOPS }, () => {
  let disksDir = '';
  before(async () => {
    const image = join(top, 'copies.img');
    disksDir = join(top, 'copies');
    await writeFile(image, '');
    await truncate(image, GIB / 2);
    await run('mkfs.ext4', ['-q', image]);
    await mkdir(disksDir);
    await run('mount', ['-o', 'loop', image, disksDir]);
  });
  after(() => run('umount', [disksDir]));

  test('nothing is copied unless somebody says so', async () => {
    const { take, list } = await createInstance(disksDir, false);
    await assert.rejects(take(), {
      ...{ code: 'NOT_SUPPORTED', message: /cannot share blocks/ },
      hint: /snapshot --copy/,
    });
    assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
  });

  test('nor by whoever took the folder of an instance for one that shares blocks', async () => {
    const { snapshots, plan, add, list, record } = await createInstance(disksDir);
    const machine = new FakeMachine();
    const snapshot = plan();
    const how = { ...UNWATCHED, mayCopy: false, machine, commit: add(snapshot) };
    await assert.rejects(snapshots.take(record(), snapshot.uuid, how), { code: 'NOT_SUPPORTED' });
    assert.equal(machine.resumes, 1);
    assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
  });

  test('a copy takes what the disks hold, and their holes stay holes', async () => {
    const { take, restore, write, dir, disks, record } = await createInstance(disksDir);
    await write('old');
    const { uuid } = await take();
    const kept = await stat(join(dir, `snapshot-${uuid}`, 'disk0.raw'));
    assert.equal(kept.size, SIZE);
    assert.ok(kept.blocks * 512 < MIB, `${kept.blocks} blocks`);
    const [snapshot = assert.fail()] = record().snapshots;
    await restore(snapshot);
    assert.ok((await stat(disks.pathOf(record(), 0))).blocks * 512 < MIB);
  });

  test('a copy, and its restoration, want room for all that the disks hold', async () => {
    const { take, restore, list, dir, disks, record } = await createInstance(disksDir);
    await writeFile(disks.pathOf(record(), 0), Buffer.alloc(SIZE, 'full'));
    const filler = join(disksDir, 'filler');
    const fill = async (freeBytes: number): Promise<void> => {
      const { bavail, bsize } = await statfs(disksDir);
      await run('fallocate', ['--length', String(bavail * bsize - freeBytes), filler]);
    };
    // More than the host's reserve, less than the reserve and the disk.
    await fill(64 * MIB + SIZE / 2);
    await assert.rejects(take(), { code: 'DISK_SPACE', message: /the disks need 32 MiB/ });
    assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
    await rm(filler);
    const snapshot = await take();
    await fill(64 * MIB + SIZE / 2);
    await assert.rejects(restore(snapshot), { code: 'DISK_SPACE', message: /32 MiB/ });
    await rm(filler);
    await rm(join(dir, `snapshot-${snapshot.uuid}`, 'disk1.raw'));
    await assert.rejects(restore(snapshot), { code: 'DISK_MISSING' });
  });

  test('a copy that is cancelled leaves nothing, and its guest goes on', async () => {
    const { take, list, write } = await createInstance(disksDir);
    await write('old');
    const machine = new FakeMachine();
    const cancelled = new AbortController();
    machine.pause = () => Promise.resolve(cancelled.abort(killed));
    await assert.rejects(take(machine, cancelled.signal), killed);
    assert.equal(machine.resumes, 1);
    assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
  });
});

/**
 * Opens a file as QEMU opens its images, in another process.
 * @returns a function that closes it
 */
async function holdElsewhere(path: string, t: TestContext): Promise<() => Promise<void>> {
  const child = spawn('qemu-io', ['-f', 'raw', path], { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => child.kill());
  child.stdin.write('info\n');
  await once(child.stdout, 'data');
  return async () => {
    const ended = once(child, 'exit');
    child.stdin.end('quit\n');
    await ended;
  };
}
