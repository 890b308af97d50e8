import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { createExportStore, type ExportStore } from '../../../noded/backup/export-store.ts';

const NAME = 'web1.example.com';
const directory = mkdtempSync(join(tmpdir(), 'gnt-exports-'));
let exports: ExportStore;

beforeEach(async () => {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  exports = createExportStore(directory);
});
after(() => rmSync(directory, { recursive: true }));

async function makeExport(dump: string): Promise<string> {
  await using unfinished = await exports.begin(NAME);
  const path = await unfinished.createDump(0, 4096);
  await writeFile(path, dump, { flag: 'r+' });
  await unfinished.cutDump(0, dump.length);
  return await unfinished.finish({
    name: NAME,
    node: 'node1',
    createdAtMs: 0,
    osType: 'keeper',
    beparams: { memoryMiB: 256, vcpus: 1 },
    disks: [{ name: null, sizeBytes: 1024 ** 2, dump: 'disk0.snap' }],
    nics: [],
    osParameters: {},
    osParametersPrivate: {},
    tags: [],
  });
}

test('an export is seen when it is whole, and takes the place of the one before', async () => {
  assert.deepEqual(await exports.list(), []);
  await makeExport('first');
  {
    await using unfinished = await exports.begin(NAME);
    await unfinished.createDump(0);
    const [only, ...others] = await exports.list();
    assert.deepEqual(others, []);
    assert.equal(only?.sizeBytes, 'first'.length);
  }
  assert.deepEqual(await readdir(directory), [NAME]);
  const path = await makeExport('second one');
  assert.equal(await readFile(join(path, 'disk0.snap'), 'utf8'), 'second one');
  const { dumps } = await exports.load(NAME);
  assert.deepEqual(dumps, [{ disk: 0, path: join(path, 'disk0.snap'), sizeBytes: 10 }]);
});

test('what a killed daemon left unfinished is swept, and nothing else', async () => {
  await makeExport('whole');
  await exports.begin('other.example.com');
  await exports.sweep();
  assert.deepEqual(await readdir(directory), [NAME]);
});

test('a dump that is a link, or is gone, is told by name and never read', async () => {
  const path = await makeExport('whole');
  const dump = join(path, 'disk0.snap');
  await rm(dump);
  await symlink('/etc/shadow', dump);
  const isRefused = (error: unknown): boolean =>
    isAppError(error, 'EXPORT_INVALID') && error.message.includes(dump);
  await assert.rejects(exports.load(NAME), isRefused);
  await rm(dump);
  await assert.rejects(exports.load(path), isRefused);
  assert.match((await exports.list())[0]?.problem ?? '', /disk0\.snap/);
});

test('a record that is no record of ours is a problem of that export only', async () => {
  const path = await makeExport('whole');
  await truncate(join(path, 'config.ini'), 10);
  assert.match((await exports.list())[0]?.problem ?? '', /config\.ini/);
  await rm(join(path, 'config.ini'));
  assert.match((await exports.list())[0]?.problem ?? '', /config\.ini is missing/);
  await exports.check(NAME);
  await exports.remove(NAME);
  await assert.rejects(exports.remove(NAME), (error) => isAppError(error, 'EXPORT_NOT_FOUND'));
});

for (const name of ['../etc', '', 'a/b', '.']) {
  test(`'${name}' is not the name of an export`, async () => {
    await assert.rejects(exports.load(name), (error) => isAppError(error, 'EXPORT_NOT_FOUND'));
  });
}
