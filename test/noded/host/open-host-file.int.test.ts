import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chown, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { confinePath, openHostFile, plainPath } from '../../../noded/host/open-host-file.ts';

let top = '';
let folder = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-open-'));
  folder = join(top, 'images');
  await mkdir(join(folder, 'debian'), { recursive: true });
  await mkdir(join(top, 'outside'));
  await writeFile(join(folder, 'debian/a.raw'), 'image');
  await writeFile(join(top, 'outside/secret'), 'secret');
  await symlink(join(top, 'outside/secret'), join(folder, 'link.raw'));
  await symlink(join(top, 'outside'), join(folder, 'way'));
  await symlink('/etc', join(folder, 'etc'));
  execFileSync('mkfifo', [join(folder, 'fifo')]);
});
after(() => rm(top, { recursive: true, force: true }));

async function read(path: string): Promise<string> {
  const file = await openHostFile(path);
  try {
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

test('a file below the folder is opened, also through a link to the folder', async () => {
  assert.equal(await read(`${folder}/./debian/a.raw`), 'image');
  await symlink(folder, join(top, 'named'));
  assert.equal(await read(`${top}/named/./debian/a.raw`), 'image');
  assert.equal(await read(join(folder, 'link.raw')), 'secret', 'a path of the operator');
});

test('a path that leaves the folder is refused, by a link at its end or within it', async () => {
  const paths = [
    'link.raw',
    'way/secret',
    'etc/shadow',
    'debian/../../outside/secret',
    '../outside/secret',
  ];
  for (const path of paths) {
    await assert.rejects(openHostFile(`${folder}/./${path}`), { name: 'Error' }, path);
  }
});

test('a folder that is replaced by a link is not followed', async () => {
  const path = `${folder}/./moving/secret`;
  await mkdir(join(folder, 'moving'));
  await writeFile(join(folder, 'moving/secret'), 'harmless');
  assert.equal(await read(path), 'harmless');
  await rename(join(folder, 'moving'), join(folder, 'moved'));
  await symlink(join(top, 'outside'), join(folder, 'moving'));
  await assert.rejects(openHostFile(path), (error: NodeJS.ErrnoException) =>
    ['ELOOP', 'ENOTDIR'].includes(error.code ?? ''),
  );
});

test('a FIFO and a folder are refused', async () => {
  for (const path of ['fifo', 'debian']) {
    await assert.rejects(openHostFile(`${folder}/./${path}`), { code: 'EINVAL' }, path);
  }
});

test('a path is confined to the innermost of the folders above it, or is not confined', () => {
  const folders = ['/srv/images', '/srv/images/public'];
  assert.equal(confinePath('/srv/images/a.raw', folders), '/srv/images/./a.raw');
  assert.equal(confinePath('/srv/images/public/d/a.raw', folders), '/srv/images/public/./d/a.raw');
  for (const path of [
    ...['/etc/shadow', '/srv/images', '/srv/images/', '/srv/images2/a.raw', 'srv/images/a.raw'],
    ...['/srv/images/../../etc/shadow', '/srv/images/./a.raw', '/srv/images//a.raw', ''],
    ...['/srv/images/a\0b', '/srv/images/public/', '/srv/images/d/'],
  ]) {
    assert.equal(confinePath(path, folders), undefined, path);
  }
  assert.equal(confinePath('/srv/images/a.raw', []), undefined, 'none by default');
  assert.equal(plainPath('/srv/images/./a.raw'), '/srv/images/a.raw');
});

test('a folder whose parent belongs to another user is refused, and a folder that belongs to another user is opened', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'gnt-open-'));
  try {
    const uploads = join(parent, 'of-another');
    const named = join(uploads, 'images');
    await mkdir(named, { recursive: true });
    await writeFile(join(named, 'secret'), 'image');
    await chown(named, 65_534, 65_534);
    assert.equal(await read(`${named}/./secret`), 'image');
    await chown(uploads, 65_534, 65_534);
    await rename(named, join(uploads, 'before'));
    await symlink(join(top, 'outside'), named);
    await assert.rejects(read(`${named}/./secret`), { code: 'HOST_PREREQUISITE' });
    await symlink(named, join(top, 'to-another'));
    await assert.rejects(read(`${top}/to-another/./secret`), { code: 'HOST_PREREQUISITE' });
  } finally {
    await rm(parent, { recursive: true });
  }
});
