import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { holdImage } from '../../../noded/storage/hold-images.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { planParts } from '../../../noded/operations/change-running-parts.ts';
import { modifyOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';
import { bridgesOnly } from '../support/bridges-only.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-change-'));
});
after(() => rm(dir, { recursive: true, force: true }));

/** Creates an instance whose three disks hold "0", "1" and "2". */
async function createThree() {
  const disks = createInstanceDisks(dir);
  const made = instanceRecord({ disks: [0, 1, 2].map(() => ({ sizeBytes: MIB })) });
  const instance: InstanceRecord = { ...made, uuid: randomUUID() };
  await disks.createEmpty(instance);
  for (const index of [0, 1, 2]) await writeFile(disks.pathOf(instance, index), String(index));
  const folder = dirname(disks.pathOf(instance, 0));
  const read = async (): Promise<Record<string, string>> => {
    const names = (await readdir(folder)).sort();
    const texts = await Promise.all(
      names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const),
    );
    return Object.fromEntries(texts.map(([name, text]) => [name, text.replaceAll('\0', '')]));
  };
  const without = (index: number): InstanceRecord => ({
    ...instance,
    disks: instance.disks.filter((_, other) => other !== index),
  });
  return { disks, instance, folder, read, without };
}

test('a disk that is removed gives its number to those behind it', async () => {
  const { disks, instance, read, without } = await createThree();
  await disks.change(instance, without(1).disks, () => Promise.resolve());
  assert.deepEqual(await read(), { 'disk0.raw': '0', 'disk1.raw': '2' });
});

const added = { uuid: randomUUID(), name: null, sizeBytes: MIB };

test('a disk that is added takes the place of the hole that an interrupted addition left', async () => {
  const { disks, instance, folder, read } = await createThree();
  await writeFile(join(folder, 'disk3.raw'), '');
  await truncate(join(folder, 'disk3.raw'), 2 * MIB);
  await disks.change(instance, [...instance.disks, added], () => Promise.resolve());
  assert.deepEqual(await read(), {
    ...{ 'disk0.raw': '0', 'disk1.raw': '1', 'disk2.raw': '2' },
    'disk3.raw': '',
  });
});

test('a disk that only the store forgot is not emptied by the one that is added', async () => {
  const { disks, instance, folder, read } = await createThree();
  const forgotten = join(folder, 'disk3.raw');
  await writeFile(forgotten, 'weeks of work');
  const before = await read();
  const never = () => Promise.reject(new Error('committed'));
  const add = () => disks.change(instance, [...instance.disks, added], never);
  await assert.rejects(add(), {
    code: 'CONFLICT',
    message: new RegExp(`^${forgotten} exists and holds data`),
  });
  assert.deepEqual(await read(), before);
});

test('one that a machine has is not taken by an addition, although nothing is on it', async () => {
  const { disks, instance, folder, read } = await createThree();
  await writeFile(join(folder, 'disk3.raw'), '');
  const before = await read();
  await using machine = await holdImage(join(folder, 'disk3.raw'));
  assert.ok(machine);
  const never = () => Promise.reject(new Error('committed'));
  await assert.rejects(disks.change(instance, [...instance.disks, added], never), {
    code: 'DISK_IN_USE',
  });
  assert.deepEqual(await read(), before);
});

test('nothing is removed while a disk is missing: the gap would be taken for that of another', async () => {
  const { disks, instance, folder, read, without } = await createThree();
  await rm(join(folder, 'disk0.raw'));
  await assert.rejects(
    disks.change(instance, without(1).disks, () => Promise.resolve()),
    { code: 'DISK_MISSING' },
  );
  assert.deepEqual(await read(), { 'disk1.raw': '1', 'disk2.raw': '2' });
});

test('a removal that no record came to know is taken back', async () => {
  const { disks, instance, read, without } = await createThree();
  const away = new Error('the store is away');
  await assert.rejects(
    disks.change(instance, without(1).disks, () => Promise.reject(away)),
    away,
  );
  assert.equal((await disks.settle(instance)).length, 1);
  assert.deepEqual(await read(), { 'disk0.raw': '0', 'disk1.raw': '1', 'disk2.raw': '2' });
  assert.deepEqual(await disks.settle(instance), []);
});

test('after a removal that was refused, its disk can be removed or copied at once', async () => {
  const { disks, instance, read, without } = await createThree();
  const taken = new Error('the MAC is taken');
  const refuse = () => disks.change(instance, without(1).disks, () => Promise.reject(taken));
  const all = { 'disk0.raw': '0', 'disk1.raw': '1', 'disk2.raw': '2' };
  const opcode = modifyOpcode({ disks: [{ action: 'remove', which: 1 }] });
  const runner = { isRunning: () => false, checkDisksUnused: () => Promise.resolve() };
  await assert.rejects(refuse(), taken);
  const clusters = { listNetworks: () => Promise.resolve([]), load: () => Promise.reject(taken) };
  await planParts(instance, opcode, { disks, runner, clusters, nicTaps: bridgesOnly });
  assert.deepEqual(await read(), all);
  await assert.rejects(refuse(), taken);
  await disks.checkCopy(instance);
  assert.deepEqual(await read(), all);
});

test('a machine that runs gives back the last disk, unless it was started with it', async () => {
  const { disks, instance } = await createThree();
  const opcode = modifyOpcode({ disks: [{ action: 'remove', which: 2 }] });
  const runner = { isRunning: () => true, checkDisksUnused: () => Promise.resolve() };
  const clusters = {
    ...{ listNetworks: () => Promise.resolve([]) },
    load: () => Promise.reject(new Error('no disk is in a group')),
  };
  const left = async (change: Partial<InstanceRecord>) => {
    const changed = { ...instance, ...change };
    const planned = await planParts(changed, opcode, { disks, runner, clusters, nicTaps: bridgesOnly }); // prettier-ignore
    return planned.disks.length;
  };
  const { nics, beparams } = instance;
  const [first, second, last] = instance.disks;
  assert.ok(first && second && last);
  await assert.rejects(left({}), { code: 'INSTANCE_STATE' });
  assert.equal(await left({ disks: [first, second, { ...last, port: 0 }] }), 2);
  // This disk was added when no port was free.
  const partsOfRun = { nics, beparams, disks: [first, second] };
  assert.equal(await left({ partsOfRun }), 2);
});

test('a removal on record is ended after a kill at any of its steps', async () => {
  for (const renamed of [0, 1]) {
    const { disks, instance, folder, read, without } = await createThree();
    const path = (name: string) => join(folder, name);
    const uuid = instance.disks[0]?.uuid ?? '';
    await rename(path('disk0.raw'), path(`disk0.leaving-${uuid}.raw`));
    if (renamed > 0) await rename(path('disk1.raw'), path('disk0.raw'));
    await disks.settle(without(0));
    assert.deepEqual(await read(), { 'disk0.raw': '1', 'disk1.raw': '2' });
  }
  const { disks, instance, folder, read, without } = await createThree();
  const uuid = instance.disks[2]?.uuid ?? '';
  await rename(join(folder, 'disk2.raw'), join(folder, `disk2.leaving-${uuid}.raw`));
  await disks.settle(without(2));
  assert.deepEqual(await read(), { 'disk0.raw': '0', 'disk1.raw': '1' });
});
