import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../noded/storage/instance-disks.ts';
import { createMovingDisks } from '../../../noded/storage/moving-disks.ts';
import { claimSharedFolder, createSharedFolder } from '../../../noded/storage/shared-folder.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const CLUSTER = clusterRecord.uuid;
const MIB = 1024 * 1024;
let root = '';
let folder = '';

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'gnt-shared-'));
  folder = join(root, 'shared');
  await mkdir(folder, { mode: 0o700 });
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Creates the local folder of a node with the common shared folder. */
async function node(
  name: string,
): Promise<{ readonly dir: string; readonly disks: InstanceDisks }> {
  const dir = join(root, name);
  await mkdir(dir, { recursive: true });
  const load = () => Promise.resolve({ uuid: CLUSTER, sharedFileStorageDir: folder });
  const disks = createInstanceDisks(dir, { shared: createSharedFolder(load) });
  return { dir, disks };
}

function newInstance(): InstanceRecord {
  const disks = [{ sizeBytes: 4 * MIB }];
  return { ...instanceRecord({ diskTemplate: 'sharedfile', disks }), uuid: randomUUID() };
}

async function place(): Promise<{
  readonly instance: InstanceRecord;
  readonly one: Awaited<ReturnType<typeof node>>;
  readonly disk: string;
}> {
  await claimSharedFolder(folder, CLUSTER);
  const one = await node('one');
  const instance = newInstance();
  await one.disks.createEmpty(instance);
  const disk = join(folder, instance.uuid, 'disk0.raw');
  await writeFile(disk, 'precious', { flag: 'r+' });
  return { instance, one, disk };
}

test('a folder without the mark of the cluster is refused, and so is that of another one', async () => {
  const { disks } = await node('one');
  await assert.rejects(disks.checkSpace(newInstance()), {
    code: 'HOST_PREREQUISITE',
    message: /is not the shared folder/,
  });
  await claimSharedFolder(folder, '11111111-0000-4000-8000-000000000000');
  await assert.rejects(disks.checkSpace(newInstance()), {
    code: 'HOST_PREREQUISITE',
    message: /another cluster/,
  });
  await assert.rejects(claimSharedFolder(folder, CLUSTER), /another cluster/);
});

test('a mark that is a link is not followed', async () => {
  await writeFile(join(root, 'elsewhere'), CLUSTER);
  await symlink(join(root, 'elsewhere'), join(folder, 'gnt-cluster-uuid'));
  const { disks } = await node('one');
  await assert.rejects(disks.checkSpace(newInstance()), { code: 'HOST_PREREQUISITE' });
});

test('a folder that others than root may write is refused, on the way to it too', async () => {
  await claimSharedFolder(folder, CLUSTER);
  const { disks } = await node('one');
  await disks.checkSpace(newInstance());
  await chmod(folder, 0o770);
  await chown(folder, 0, 12_345);
  await assert.rejects(disks.checkSpace(newInstance()), { code: 'HOST_PREREQUISITE' });
  await chmod(folder, 0o700);
  await chmod(root, 0o777);
  await assert.rejects(disks.checkSpace(newInstance()), { code: 'HOST_PREREQUISITE' });
});

test('a folder among the disks of the node is refused', async () => {
  const { disks, dir } = await node('one');
  folder = join(dir, 'inside');
  await mkdir(folder, { mode: 0o700 });
  await claimSharedFolder(folder, CLUSTER);
  await assert.rejects(disks.checkSpace(newInstance()), {
    code: 'HOST_PREREQUISITE',
    message: /lies inside/,
  });
});

test('shared disks are in the folder, root alone may enter it, and a reinstallation finds them', async () => {
  const { instance, one, disk } = await place();
  assert.equal((await stat(join(folder, instance.uuid))).mode & 0o777, 0o700);
  assert.equal((await stat(disk)).size, 4 * MIB);
  assert.ok((await lstat(join(one.dir, instance.uuid))).isSymbolicLink());
  assert.deepEqual(await one.disks.list(), [instance.uuid]);
  await one.disks.createEmpty(instance);
  assert.equal((await readFile(disk)).subarray(0, 8).toString('hex'), '00'.repeat(8));
});

test('a node that gets the instance finds its disks, and grows and removes them', async () => {
  const { instance, disk } = await place();
  const two = await node('two');
  await two.disks.settle(instance);
  assert.deepEqual((await two.disks.activate(instance)).length, 1);
  await two.disks.grow(instance, 0, 8 * MIB);
  assert.equal((await stat(disk)).size, 8 * MIB);
  await two.disks.remove(instance);
  assert.deepEqual(await readdir(folder), ['gnt-cluster-uuid']);
  assert.deepEqual(await readdir(two.dir), []);
});

test('disks that were never used on the node that removes their instance go too', async () => {
  const { instance } = await place();
  await (await node('two')).disks.remove(instance);
  assert.deepEqual(await readdir(folder), ['gnt-cluster-uuid']);
});

test('no sweep of a node removes disks of the folder: neither a copy that failed nor a departure', async () => {
  const { instance, disk, one } = await place();
  const two = await node('two');
  const moving = createMovingDisks(two.dir, two.disks);
  for (const left of ['copying', 'leaving'])
    await symlink(join(folder, instance.uuid), join(two.dir, `${left}-${instance.uuid}`));
  await two.disks.settleCopy(instance.uuid, () => Promise.resolve(false));
  await moving.removeLeft(instance.uuid);
  assert.deepEqual(await readdir(two.dir), []);
  assert.match(await readFile(disk, 'latin1'), /^precious/);
  await one.disks.activate(instance);
});

test('a removal while the folder is not mounted changes nothing', async () => {
  const { instance, one } = await place();
  await rm(join(folder, 'gnt-cluster-uuid'));
  await assert.rejects(one.disks.remove(instance), { code: 'HOST_PREREQUISITE' });
  await assert.rejects(one.disks.settle(instance), { code: 'HOST_PREREQUISITE' });
  await assert.rejects(one.disks.createEmpty(instance), { code: 'HOST_PREREQUISITE' });
  assert.deepEqual(await readdir(one.dir), [instance.uuid]);
});

test('whether there can be snapshots is asked of the folder, and leaves nothing in it', async () => {
  const { instance, one } = await place();
  const { snapshots } = one.disks;
  await snapshots.check(instance, false).catch((error: unknown) => {
    assert.match(String(error), new RegExp(instance.uuid));
  });
  assert.deepEqual(await readdir(join(folder, instance.uuid)), ['disk0.raw']);
});

test('what is in the folder takes no room of the node', async () => {
  const { instance, one, disk } = await place();
  await writeFile(disk, Buffer.alloc(MIB, 1), { flag: 'r+' });
  assert.equal(await one.disks.ownBytes(instance), 0);
});

test("a folder of a local instance that is an operator's link is no reason not to remove it", async () => {
  const { dir, disks } = await node('one');
  const instance = instanceRecord({ diskTemplate: 'file', disks: [{ sizeBytes: MIB }] });
  await mkdir(join(root, 'elsewhere'));
  await symlink(join(root, 'elsewhere'), join(dir, instance.uuid));
  await disks.remove(instance);
  assert.deepEqual(await readdir(dir), []);
});
