import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  cp,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../noded/storage/instance-disks.ts';
import { instanceRecord } from '../support/records.ts';

let top = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-copy-'));
});
after(() => rm(top, { recursive: true, force: true }));

const SIZE = 64 * MIB;
const yes = () => Promise.resolve(true);
const no = () => Promise.resolve(false);
const how = { signal: new AbortController().signal, onProgress: () => undefined, isThere: no };

/** Creates two disks with data at both ends and a hole between. */
async function createSource() {
  const dir = await mkdtemp(join(top, 'disks-'));
  const disks = createInstanceDisks(dir);
  const made = instanceRecord({ disks: [{ sizeBytes: SIZE }, { sizeBytes: SIZE }] });
  const from: InstanceRecord = { ...made, uuid: randomUUID() };
  const to: InstanceRecord = { ...made, uuid: randomUUID() };
  await disks.createEmpty(from);
  for (const index of [0, 1]) {
    await using file = await open(disks.pathOf(from, index), 'r+');
    await file.write(`first${index}`, 0);
    await file.write(`last${index}`, SIZE - 5);
  }
  return { disks, from, to, dir };
}

async function assertSame(disks: InstanceDisks, from: InstanceRecord, to: InstanceRecord) {
  for (const index of [0, 1]) {
    const [old, copy] = await Promise.all(
      [from, to].map((instance) => readFile(disks.pathOf(instance, index))),
    );
    assert.ok(old?.equals(copy ?? Buffer.of()));
    const { blocks, mode } = await stat(disks.pathOf(to, index));
    assert.equal(mode & 0o777, 0o600);
    assert.ok(blocks * 512 < MIB, 'holes stay holes');
  }
}

test('a copy has the same content, and its holes', async () => {
  const { disks, from, to, dir } = await createSource();
  assert.equal(await disks.copy(from, to, { ...how, commit: () => Promise.resolve(7) }), 7);
  await assertSame(disks, from, to);
  assert.deepEqual((await readdir(dir)).sort(), [from.uuid, to.uuid].sort());
});

test('a copy boots by the EFI variables of the other one, which are its own from then on', async () => {
  const { disks, from, to } = await createSource();
  const copy = { ...to, instanceId: randomUUID() };
  await writeFile(disks.variablesPathOf(from), 'Boot0003 own-loader', { mode: 0o600 });
  await disks.copy(from, copy, { ...how, commit: () => Promise.resolve() });
  await disks.settle(copy);
  const path = disks.variablesPathOf(copy);
  assert.equal(await readFile(path, 'utf8'), 'Boot0003 own-loader');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await writeFile(path, 'other');
  assert.equal(await readFile(disks.variablesPathOf(from), 'utf8'), 'Boot0003 own-loader');
  assert.deepEqual(
    (await readdir(join(path, '..'))).filter((name) => name.includes('efi')),
    [basename(path)],
  );
});

test('a copy that is cancelled, or whose record is refused, leaves nothing', async () => {
  const { disks, from, to, dir } = await createSource();
  const reason = new Error('cancelled');
  const refused = () => Promise.reject(reason);
  await assert.rejects(disks.copy(from, to, { ...how, commit: refused }), reason);
  await assert.rejects(
    disks.copy(from, to, { ...how, signal: AbortSignal.abort(reason), commit: refused }),
    reason,
  );
  assert.deepEqual(await readdir(dir), [from.uuid]);
});

test('a record that is there keeps its disks, although the answer to its commit was lost', async () => {
  const { disks, from, to } = await createSource();
  const lost = new Error('no answer');
  const commit = async (): Promise<never> => {
    assert.deepEqual(await disks.listCopies(), [], 'while its job runs, it is not left');
    throw lost;
  };
  await assert.rejects(disks.copy(from, to, { ...how, isThere: yes, commit }), lost);
  assert.deepEqual(await disks.listCopies(), [to.uuid]);
  await disks.settleCopy(to.uuid, yes);
  await assertSame(disks, from, to);
});

test('a copy that no daemon has settled so far is taken by the first job of its instance', async () => {
  const { disks, from, to, dir } = await createSource();
  const left = `copying-${to.uuid}`;
  await cp(join(dir, from.uuid), join(dir, left), { recursive: true });
  assert.deepEqual(await disks.settle(to), [left]);
  assert.equal((await disks.activate(to)).length, 2);
  assert.deepEqual(await disks.settle(to), []);
  await cp(join(dir, from.uuid), join(dir, left), { recursive: true });
  assert.deepEqual(await disks.settle(to), [], 'disks that are there are not replaced');
});

test('what a kill leaves of a copy goes when no record knows it, and stays when nobody can say', async () => {
  const { disks, from, to, dir } = await createSource();
  const half = join(dir, `copying-${to.uuid}`);
  await cp(join(dir, from.uuid), half, { recursive: true });
  const away = new Error('the store is away');
  await assert.rejects(
    disks.settleCopy(to.uuid, () => Promise.reject(away)),
    away,
  );
  assert.ok((await readdir(dir)).includes(`copying-${to.uuid}`));
  await disks.settleCopy(to.uuid, no);
  assert.deepEqual(await readdir(dir), [from.uuid]);
});

test('disks that are away, or that a machine has, are not copied', async () => {
  const { disks, from, to } = await createSource();
  const aside = `${disks.pathOf(from, 1)}.aside`;
  await rename(disks.pathOf(from, 1), aside);
  await assert.rejects(disks.checkCopy(from), { code: 'DISK_MISSING' });
  await rename(aside, disks.pathOf(from, 1));
  await disks.checkCopy(from);
  const commit = () => disks.checkUnused(from);
  await assert.rejects(disks.copy(from, to, { ...how, commit }), { code: 'DISK_IN_USE' });
});
