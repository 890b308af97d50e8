import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import {
  chown,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import {
  createExportStore,
  type ExportStore,
} from '../../../../noded/instances/backup/export-store.ts';
import { makeExportOf } from './make-export.ts';

const NAME = 'web1.example.com';
const directory = mkdtempSync(join(tmpdir(), 'gnt-exports-'));
let exports: ExportStore;

beforeEach(async () => {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  exports = createExportStore(directory);
});
after(() => rmSync(directory, { recursive: true }));

const makeExport = (dump: string): Promise<string> => makeExportOf(exports, NAME, dump);

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

test('an export of another folder gives no tag that gives an identity, and lists it as lost', async () => {
  const tags = ['web', 'gnt:identity=https://vault.example.com'];
  const path = await makeExportOf(exports, NAME, 'dump', tags);
  const own = await exports.load(NAME);
  assert.deepEqual([own.record.tags, own.losses], [tags, []]);
  const elsewhere = mkdtempSync(join(tmpdir(), 'gnt-elsewhere-'));
  try {
    await rename(path, join(elsewhere, NAME));
    const foreign = await exports.load(join(elsewhere, NAME));
    assert.deepEqual(foreign.record.tags, ['web']);
    assert.deepEqual(foreign.losses, [`tag ${tags[1]}: give it with --tags`]);
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});

test('what a killed daemon left unfinished is swept, and nothing else', async () => {
  await makeExport('whole');
  await exports.begin('other.example.com');
  await exports.sweep();
  assert.deepEqual(await readdir(directory), [NAME]);
});

test('an export of an instance whose name ends as a work in progress might stays as it is', async () => {
  const others = ['vm.new', 'vm.old'];
  for (const name of others) await makeExportOf(exports, name, name);
  await makeExportOf(exports, 'vm', 'first');
  await makeExportOf(exports, 'vm', 'second');
  await exports.sweep();
  assert.deepEqual(
    (await exports.list()).map(({ name, problem }) => ({ name, problem })),
    ['vm', ...others].map((name) => ({ name, problem: null })),
  );
  await exports.remove('vm');
  await exports.sweep();
  assert.deepEqual((await readdir(directory)).sort(), others);
  for (const name of others) {
    const { dumps } = await exports.load(name);
    assert.equal(await readFile(dumps[0]?.path ?? '', 'utf8'), name);
  }
});

test('a removal that was killed half way leaves no half of an export', async () => {
  await makeExport('whole');
  const { dumps } = await exports.load(NAME);
  await rename(join(directory, NAME), join(directory, `${NAME}~n`));
  await rm(dumps[0]?.path.replace(NAME, `${NAME}~n`) ?? '');
  await exports.sweep();
  assert.deepEqual(await readdir(directory), []);
});

test('a dump that is swapped after the check is refused; one that is swapped later is not what is read', async () => {
  const path = await makeExport('the dump');
  const dump = join(path, 'disk0.snap');
  const secret = join(directory, 'secret');
  await writeFile(secret, 'SECRET!!', { mode: 0o600 });
  const swap = async (): Promise<void> => {
    await rename(dump, `${dump}.kept`);
    await symlink(secret, dump);
  };
  const swapBack = (): Promise<void> => rename(`${dump}.kept`, dump);
  const loaded = await exports.load(path);
  await swap();
  await assert.rejects(loaded.pin(), (error) => isAppError(error, 'EXPORT_INVALID'));
  await swapBack();
  await using pinned = await loaded.pin();
  await swap();
  const [only] = pinned.dumps;
  assert.equal(await readFile(only?.path ?? '', 'utf8'), 'the dump');
  await swapBack();
  await rm(secret);
});

test('a directory that is swapped for a link to another one gives none of its files', async () => {
  const path = await makeExport('the dump');
  const other = join(directory, 'other');
  await mkdir(other);
  await writeFile(join(other, 'disk0.snap'), 'SECRET!!');
  const loaded = await exports.load(path);
  await rename(path, `${path}.kept`);
  await symlink(other, path);
  await assert.rejects(loaded.pin(), (error) => isAppError(error, 'EXPORT_INVALID'));
});

test('config.ini and dumps that are links, FIFOs or hard links to files of others are refused at once', async () => {
  const path = await makeExport('the dump');
  const dump = join(path, 'disk0.snap');
  await chown(path, 65534, 65534);
  await link(dump, join(directory, 'second-name'));
  const isRefused = (pattern: RegExp) => (error: unknown) =>
    isAppError(error, 'EXPORT_INVALID') && pattern.test(error.message);
  await assert.rejects(exports.load(path), isRefused(/hard link/));
  await rm(dump);
  execFileSync('mkfifo', [dump]);
  await assert.rejects(exports.load(path), isRefused(/not a regular file/));
  await rename(join(path, 'config.ini'), join(path, 'real.ini'));
  await symlink(join(path, 'real.ini'), join(path, 'config.ini'));
  await assert.rejects(exports.load(path), isRefused(/config\.ini/));
  await rm(join(directory, 'second-name'));
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
