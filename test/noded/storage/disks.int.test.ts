import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { SEED_FILES, writeSeedDisk, type SeedDocuments } from '../../../noded/storage/seed-disk.ts';
import { instanceRecord } from '../support/records.ts';
import { isFilledWith } from '../../lab/is-filled.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-disks-'));
});
after(() => rm(dir, { recursive: true, force: true }));

/** A compressed document, since not all of them are text. */
const GZIP = Buffer.from('1f8b08000000000000ff', 'hex');
const documents: SeedDocuments = {
  'meta-data': Buffer.from('instance-id: i-1\nlocal-hostname: web1\n'),
  'network-config': Buffer.from('version: 2\nethernets: {}\n'),
  'user-data': GZIP,
  'vendor-data': Buffer.alloc(0),
};

async function readSeed(path: string, name: keyof SeedDocuments): Promise<Buffer> {
  const out = join(dir, 'out');
  await run('mcopy', ['-n', '-o', '-i', path, `::${name}`, out]);
  return await readFile(out);
}

test('a seed disk has the label that cloud-init looks for, and its four documents byte for byte', async () => {
  const path = join(dir, 'seed.img');
  await writeSeedDisk(path, documents);
  const { stdout: label } = await run('blkid', ['-p', '-s', 'LABEL', '-o', 'value', path]);
  assert.equal(label.trim(), 'CIDATA');
  const { stdout: names } = await run('mdir', ['-b', '-i', path, '::']);
  assert.deepEqual(
    names
      .trim()
      .split('\n')
      .map((name) => name.slice(3))
      .sort(),
    [...SEED_FILES],
  );
  for (const name of SEED_FILES)
    assert.ok((await readSeed(path, name)).equals(documents[name]), name);
});

test('only root may read a seed disk, and the same documents make the same disk', async () => {
  const [a, b] = [join(dir, 'a.img'), join(dir, 'b.img')];
  await writeSeedDisk(a, documents);
  await writeSeedDisk(b, documents);
  assert.equal((await stat(a)).mode & 0o777, 0o600);
  assert.ok((await readFile(a)).equals(await readFile(b)));
});

test('a seed disk takes the place of an older one', async () => {
  const path = join(dir, 'again.img');
  await writeSeedDisk(path, documents);
  await writeSeedDisk(path, { ...documents, 'meta-data': Buffer.from('instance-id: i-2\n') });
  assert.match((await run('mtype', ['-i', path, '::meta-data'])).stdout, /i-2/);
});

test('documents as large as an instance may have fit on the seed disk', async () => {
  const large = Buffer.alloc(1_400_000, 'x');
  for (const given of [
    { ...documents, 'network-config': Buffer.alloc(1024 * 1024, 'x') },
    { 'meta-data': large, 'network-config': large, 'user-data': large, 'vendor-data': large },
  ]) {
    const path = join(dir, 'large.img');
    await writeSeedDisk(path, given);
    for (const name of SEED_FILES) assert.ok((await readSeed(path, name)).equals(given[name]));
  }
});

test('disks are sparse files of the asked size that only root may open', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 1 << 30 }, { sizeBytes: 1 << 20 }] });
  await disks.createEmpty(instance);
  const { size, blocks, mode } = await stat(disks.pathOf(instance, 0));
  assert.deepEqual([size, mode & 0o777], [1 << 30, 0o600]);
  assert.ok(blocks < 100);
  assert.equal((await stat(disks.pathOf(instance, 1))).size, 1 << 20);
  assert.equal((await stat(join(disks.pathOf(instance, 0), '..'))).mode & 0o777, 0o700);
});

test('what disks have written is told, of one without any nothing, and with snapshots nothing either', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 1 << 22 }, { sizeBytes: 1 << 22 }] });
  assert.equal(await disks.ownBytes(instance), 0);
  await disks.createEmpty(instance);
  assert.equal(await disks.ownBytes(instance), 0);
  for (const index of [0, 1])
    await writeFile(disks.pathOf(instance, index), Buffer.alloc(65_536, 1));
  assert.equal(await disks.ownBytes(instance), 2 * 65_536);
  await mkdir(join(dir, instance.uuid, `snapshot-${instance.uuid}`));
  assert.equal(await disks.ownBytes(instance), 0);
});

test('an installation starts from zeros, whatever was on the disk', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 1 << 20 }] });
  await disks.createEmpty(instance);
  await writeFile(disks.pathOf(instance, 0), 'old data');
  await truncate(disks.pathOf(instance, 0), 5 << 20);
  await disks.createEmpty(instance);
  const bytes = await readFile(disks.pathOf(instance, 0));
  assert.equal(bytes.length, 1 << 20);
  assert.ok(isFilledWith(0, bytes));
});

test('a disk that cannot be made is named', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 2 ** 52 }] });
  await assert.rejects(disks.createEmpty(instance), { code: 'DISK_FULL', message: /disk0\.raw/ });
});

test('removing takes everything of the instance, and nothing when there is nothing', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 1 << 20 }] });
  await disks.createEmpty(instance);
  await disks.remove(instance);
  await disks.remove(instance);
  await assert.rejects(stat(join(disks.pathOf(instance, 0), '..')), { code: 'ENOENT' });
});
