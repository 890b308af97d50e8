import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { statSync, watch } from 'node:fs';
import {
  chmod,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { machine } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pack } from 'tar-stream';
import { run } from '#shared/process/run.ts';
import { collect } from '#shared/stream/collect.ts';
import { acquireLock } from '../../../appliance/image/lock.ts';
import { createImportLab, filesOf, never } from './support/import-lab.ts';

const imports = await createImportLab();
after(() => imports[Symbol.asyncDispose]());
const { top, imported, makeFolder, bring, rootOf, leftovers } = imports;

test('a tar writes nothing outside of the appliance, by names and by links', async () => {
  const tar = pack();
  const path = join(top, 'sly.tar');
  for (const name of ['../escaped', '/tmp/gnt-escaped', 'a/../../escaped', '.hidden'])
    tar.entry({ name }, 'out');
  tar.entry({ name: 'root.img', type: 'symlink', linkname: '/etc/passwd' });
  for (const [name, bytes] of Object.entries(filesOf('root 5')))
    tar.entry({ name: `./${name}` }, bytes);
  tar.finalize();
  await writeFile(path, await collect(tar, 1e6));
  await bring(path, 'sly');
  assert.equal(await rootOf('sly'), 'root 5');
  assert.deepEqual(
    (await readdir(top)).filter((name) => name.includes('escaped')),
    [],
  );
  const twice = pack();
  for (const bytes of ['one', 'two']) twice.entry({ name: 'root.img' }, bytes);
  twice.finalize();
  await writeFile(path, await collect(twice, 1e6));
  await assert.rejects(bring(path, 'sly'), { code: 'APPLIANCE_CORRUPT' });
});

test('links, FIFOs and changed files in an imported folder are refused without showing their contents', async () => {
  const secret = join(top, 'secret');
  // Of the same length as the manifest's kernel.
  await writeFile(secret, 'SECRET', { mode: 0o600 });
  const sly = await makeFolder('sly-folder', 'root 7');
  for (const name of ['bzImage', 'manifest.json']) {
    await rename(join(sly, name), join(top, 'kept-file'));
    await symlink(secret, join(sly, name));
    await assert.rejects(bring(sly, 'sly-folder'), {
      code: 'APPLIANCE_CORRUPT',
      message: `cannot import ${join(sly, name)}: it is a symbolic link`,
    });
    await rm(join(sly, name));
    await run('mkfifo', [join(sly, name)]);
    await assert.rejects(bring(sly, 'sly-folder'), {
      code: 'APPLIANCE_CORRUPT',
      message: `cannot import ${join(sly, name)}: it is not a regular file`,
    });
    await rm(join(sly, name));
    await rename(join(top, 'kept-file'), join(sly, name));
  }
  await writeFile(join(sly, 'bzImage'), 'SECRET');
  const digest = createHash('sha256').update('SECRET').digest('hex');
  await assert.rejects(bring(sly, 'sly-folder'), (error: Error) => {
    assert.equal(error.message, `${join(sly, 'bzImage')} differs from its manifest`);
    assert.ok(!error.message.includes(digest));
    return true;
  });
  await run('mkfifo', [join(top, 'pipe.tar')]);
  await assert.rejects(bring(join(top, 'pipe.tar'), 'pipe'), { code: 'APPLIANCE_CORRUPT' });
  assert.deepEqual(await leftovers(), []);
});

test('an import has mode 0700 until it is verified, and an interrupted import leaves no files', async () => {
  const sizeBytes = 256 * 1024 ** 2;
  const root = { name: 'root.img', sizeBytes, sha256: '0'.repeat(64) };
  const large = await makeFolder('large', 'root 8', { root });
  await truncate(join(large, 'root.img'), sizeBytes);
  const ends = new AbortController();
  const reason = new Error('enough');
  const modes: number[] = [];
  const watcher = watch(imported, (_, name) => {
    if (name?.startsWith('.import-') !== true || ends.signal.aborted) return;
    modes.push(statSync(join(imported, name)).mode & 0o777);
    ends.abort(reason);
  });
  try {
    await assert.rejects(bring(large, 'large', ends.signal), (error) => error === reason);
  } finally {
    watcher.close();
  }
  assert.deepEqual(modes, [0o700]);
  assert.deepEqual(await leftovers(), []);
  const mask = process.umask(0o077);
  await bring(await makeFolder('masked', 'root 9'), 'masked').finally(() => process.umask(mask));
  const modeOf = async (path: string) => (await stat(join(imported, path))).mode & 0o777;
  assert.equal(await modeOf('masked'), 0o755);
  assert.equal(await modeOf('masked/root.img'), 0o644);
});

test('an import waits for the lock of another import', async () => {
  const folder = await makeFolder('second', 'root 10');
  const lock = await acquireLock(join(imported, '.lock'), {
    signal: never,
    onWait: () => undefined,
  });
  const live = join(imported, '.import-live');
  await mkdir(live);
  const waits = Promise.withResolvers<undefined>();
  const second = bring(folder, 'second', never, () => waits.resolve(undefined));
  await Promise.race([waits.promise, second]);
  assert.deepEqual(await leftovers(), ['.import-live']);
  await lock.release();
  await second;
  assert.equal(await rootOf('second'), 'root 10');
  assert.deepEqual(await leftovers(), []);
});

test('SIGINT ends a waiting import, and an aborted import of a tar leaves no files', async () => {
  const root = join(top, 'node');
  const dir = join(root, 'var/lib/gnt/appliances');
  await mkdir(dir, { recursive: true });
  const lock = await acquireLock(join(dir, '.lock'), { signal: never, onWait: () => undefined });
  const main = join(import.meta.dirname, '../../../appliance/main.ts');
  const args = ['--disable-warning=ExperimentalWarning', main, 'import', join(top, 'second')];
  const env = { PATH: process.env['PATH'], GNT_ROOT: root };
  const command = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(command, 'exit');
  await Promise.race([once(command.stdout, 'data'), ended]);
  command.kill('SIGINT');
  assert.deepEqual(await ended, [130, null]);
  await lock.release();
  assert.deepEqual(await readdir(dir), ['.lock']);
  const tar = join(top, 'large.tar');
  await run('tar', ['-C', join(top, 'large'), '-cf', tar, '--sort=name', '.']);
  const ends = new AbortController();
  const reason = new Error('enough');
  const watcher = watch(imported, (_, name) => {
    if (name?.startsWith('.import-') === true) ends.abort(reason);
  });
  try {
    await assert.rejects(bring(tar, 'large', ends.signal), (error) => error === reason);
  } finally {
    watcher.close();
  }
  assert.deepEqual(await leftovers(), []);
});

test('the next import restores an appliance that a killed import was replacing', async () => {
  await bring(await makeFolder('survivor', 'root 11'), 'survivor');
  await rename(join(imported, 'survivor'), join(imported, '.former-survivor'));
  const half = join(imported, '.import-half');
  await mkdir(half);
  await chmod(half, 0o700);
  await bring(await makeFolder('another', 'root 12'), 'another');
  assert.equal(await rootOf('survivor'), 'root 11');
  // The new one already had the name, so that the former one is left over.
  await mkdir(join(imported, '.former-survivor'));
  await bring(join(top, 'another'), 'another');
  assert.equal(await rootOf('survivor'), 'root 11');
  assert.deepEqual(await leftovers(), []);
});

test('an appliance whose manifest needs another architecture or more memory is refused', async () => {
  const foreign = await makeFolder('foreign', 'root 13', { architecture: 's390x' });
  await assert.rejects(bring(foreign, 'foreign'), {
    code: 'VALIDATION',
    message: new RegExp(`its architecture is "s390x", but this host is ${machine()}`),
  });
  const huge = await makeFolder('huge', 'root 14', { memoryMiB: 1e9 });
  await assert.rejects(bring(huge, 'huge'), {
    code: 'VALIDATION',
    message: /its memoryMiB of 1000000000 exceeds this host's [0-9]+/,
  });
  assert.deepEqual(await leftovers(), []);
});
