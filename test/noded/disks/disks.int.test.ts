import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createInstanceDisks } from '../../../noded/disks/instance-disks.ts';
import { writeSeedDisk } from '../../../noded/disks/seed-disk.ts';
import { instanceRecord } from '../support/records.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-disks-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const documents = {
  metaData: 'instance-id: i-1\nlocal-hostname: web1\n',
  networkConfig: 'version: 2\nethernets: {}\n',
};

test('a seed disk has the label that cloud-init looks for, and its four documents', async () => {
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
    ['meta-data', 'network-config', 'user-data', 'vendor-data'],
  );
  const read = async (name: string) => (await run('mtype', ['-i', path, `::${name}`])).stdout;
  assert.equal(`${await read('meta-data')}`.trim(), documents.metaData.trim());
  assert.equal(`${await read('network-config')}`.trim(), documents.networkConfig.trim());
  assert.match(
    await read('user-data'),
    /^#include\nhttp:\/\/169\.254\.169\.254\/nocloud\/user-data/,
  );
  assert.match(await read('vendor-data'), /\/nocloud\/vendor-data/);
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
  await writeSeedDisk(path, { ...documents, metaData: 'instance-id: i-2\n' });
  assert.match((await run('mtype', ['-i', path, '::meta-data'])).stdout, /i-2/);
});

test('a network configuration of 1 MiB fits on the seed disk', async () => {
  const path = join(dir, 'large.img');
  await writeSeedDisk(path, { ...documents, networkConfig: `# ${'x'.repeat(1024 * 1024 - 3)}\n` });
  const { stdout } = await run('mtype', ['-i', path, '::network-config']);
  assert.equal(stdout.trimEnd().length, 1024 * 1024 - 1);
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

test('an installation starts from zeros, whatever was on the disk', async () => {
  const disks = createInstanceDisks(dir);
  const instance = instanceRecord({ disks: [{ sizeBytes: 1 << 20 }] });
  await disks.createEmpty(instance);
  await writeFile(disks.pathOf(instance, 0), 'old data');
  await truncate(disks.pathOf(instance, 0), 5 << 20);
  await disks.createEmpty(instance);
  const bytes = await readFile(disks.pathOf(instance, 0));
  assert.equal(bytes.length, 1 << 20);
  assert.ok(bytes.every((byte) => byte === 0));
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
