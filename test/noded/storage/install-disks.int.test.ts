import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { chooseDisks, type FormerDisks } from '../../../noded/storage/choose-disks.ts';
import { instanceRecord } from '../support/records.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-beside-'));
});
after(() => rm(dir, { recursive: true, force: true }));

/** Creates an instance whose disks hold "old", and the record of its next installation. */
async function createInstalled() {
  const disks = createInstanceDisks(dir);
  const made = instanceRecord({ disks: [{ sizeBytes: MIB }, { sizeBytes: MIB }] });
  const old = { ...made, uuid: randomUUID() };
  const next = { ...old, instanceId: randomUUID() };
  await disks.createEmpty(old);
  const paths = [0, 1].map((index) => disks.pathOf(old, index));
  for (const path of paths) await writeFile(path, 'old');
  const files = disks.openForInstall(next, { kind: 'beside', neededBytes: MIB });
  const fill = async (): Promise<void> => {
    await files.create();
    for (const index of [0, 1]) await writeFile(files.pathOf(index), 'new');
    await files.sync();
  };
  const read = (): Promise<readonly string[]> =>
    Promise.all(paths.map((path) => readFile(path, 'utf8')));
  const list = (): Promise<readonly string[]> => readdir(dirname(paths[0] ?? ''));
  return { disks, old, next, files, fill, read, list };
}

test('new disks are beside the old ones until they take their place', async () => {
  const { files, fill, read, list } = await createInstalled();
  await fill();
  assert.deepEqual(await read(), ['old', 'old']);
  assert.equal((await stat(files.pathOf(0))).mode & 0o777, 0o600);
  await files.takeOver();
  assert.deepEqual(await read(), ['new', 'new']);
  assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
});

test('new disks that are discarded leave the old ones as they were', async () => {
  const { files, fill, read, list } = await createInstalled();
  await fill();
  await files.discard();
  assert.deepEqual(await read(), ['old', 'old']);
  assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
});

test('disks that were not emptied yet are not emptied by a failure', async () => {
  const { disks, next, read } = await createInstalled();
  using inPlace = disks.openForInstall(next, { kind: 'in-place' });
  await inPlace.discard();
  assert.deepEqual(await read(), ['old', 'old']);
  await inPlace.create();
  await inPlace.discard();
  assert.deepEqual(
    (await read()).map((text) => text.replaceAll('\0', '')),
    ['', ''],
  );
});

test('after a kill it is the record that says whose disks they are, also half way', async () => {
  const killed = await createInstalled();
  await killed.fill();
  assert.equal((await killed.disks.settle(killed.old)).length, 2);
  assert.deepEqual(await killed.read(), ['old', 'old']);
  assert.deepEqual(await killed.list(), ['disk0.raw', 'disk1.raw']);

  const halfWay = await createInstalled();
  await halfWay.fill();
  await writeFile(halfWay.disks.pathOf(halfWay.old, 0), 'new');
  await rm(halfWay.files.pathOf(0));
  assert.equal((await halfWay.disks.settle(halfWay.next)).length, 1);
  assert.deepEqual(await halfWay.read(), ['new', 'new']);
  assert.deepEqual(await halfWay.disks.settle(halfWay.next), []);
});

test('while the record waits for the end of an installation, its disks stay for it', async () => {
  const { disks, old, next, fill, read, list } = await createInstalled();
  await fill();
  assert.deepEqual(await disks.settle({ ...old, installState: 'installing' }), []);
  assert.equal((await list()).length, 4);
  await disks.settle({ ...next, installState: 'installed' });
  assert.deepEqual(await read(), ['new', 'new']);
});

test('a disk is grown that the record tells of, though taking it over had failed', async () => {
  const { disks, next, fill, read, list } = await createInstalled();
  await fill();
  await disks.grow(next, 0, 4);
  assert.deepEqual(await read(), ['new\0', 'new']);
  assert.deepEqual(await list(), ['disk0.raw', 'disk1.raw']);
});

test('what is no new disk is left alone, and no disks are none to settle', async () => {
  const { disks, old, next, list } = await createInstalled();
  const other = join(dirname(disks.pathOf(old, 0)), `disk0.next-${next.instanceId}.raw.bak`);
  await writeFile(other, 'mine');
  assert.deepEqual(await disks.settle(next), []);
  assert.equal((await list()).length, 3);
  assert.deepEqual(await disks.settle({ ...old, uuid: randomUUID() }), []);
});

test('the room that new disks may take is promised to nobody else until they are done', async () => {
  const disks = createInstanceDisks(dir);
  const free = await disks.freeBytes();
  const first = instanceRecord({ disks: [{ sizeBytes: 4 * free }] });
  const second = { ...first, uuid: randomUUID() };
  const imageBytes = Math.floor(free * 0.6);
  assert.equal((await disks.roomBeside(first, imageBytes)).isEnough, true);
  const said: string[] = [];
  const report = { log: (line: string) => void said.push(line) };
  const choose = (how: 'keep' | 'keep-if-room') =>
    chooseDisks(disks, second, how, imageBytes, report);
  {
    using held = disks.openForInstall(first, { kind: 'beside', neededBytes: imageBytes });
    assert.equal(held.areBeside, true);
    assert.equal((await disks.roomBeside(second, imageBytes)).isEnough, false);
    await assert.rejects(choose('keep'), { code: 'DISK_SPACE', hint: /--no-keep-old/ });
    assert.equal((await choose('keep-if-room')).areBeside, false);
    assert.match(said.join(), /no room to keep the old disks/);
  }
  using chosen = await choose('keep-if-room');
  assert.equal(chosen.areBeside, true);
});

test('disks whose blocks a snapshot shares are not overwritten where new ones have no room', async () => {
  const disks = createInstanceDisks(dir);
  const free = await disks.freeBytes();
  const made = instanceRecord({ disks: [{ sizeBytes: 4 * free }] });
  const { uuid, instanceId, disks: parts } = made;
  const kept = {
    ...{ uuid, name: 's', takenAtMs: 0, wasRunning: false, hostKeys: null },
    ...{ instanceId, installState: 'installed' as const, disks: parts },
  };
  const report = { log: () => undefined };
  const choose = (snapshots: readonly (typeof kept)[], how: FormerDisks, imageBytes: number) =>
    chooseDisks(disks, { ...made, snapshots: [...snapshots] }, how, imageBytes, report);
  for (const how of ['keep', 'keep-if-room', 'overwrite'] as const) {
    await assert.rejects(choose([kept], how, 2 * free), {
      code: 'DISK_SPACE',
      hint: /remove-snapshot/,
    });
  }
  using overwritten = await choose([kept], 'overwrite', MIB);
  assert.equal(overwritten.areBeside, false);
  // Worthless disks need no room beside them.
  using worthless = await choose([kept], 'worthless', 2 * free);
  assert.equal(worthless.areBeside, false);
  using alone = await choose([], 'overwrite', 2 * free);
  assert.equal(alone.areBeside, false);
});

test('new disks are guessed to take what the old ones have, but no more than they may', async () => {
  const { disks, old } = await createInstalled();
  await writeFile(disks.pathOf(old, 0), Buffer.alloc(MIB / 2, 1));
  const { neededBytes } = await disks.roomBeside(old, 0);
  assert.ok(neededBytes >= MIB / 2 && neededBytes < MIB, String(neededBytes));
  assert.equal((await disks.roomBeside(old, 100 * MIB)).neededBytes, 2 * MIB);
});
