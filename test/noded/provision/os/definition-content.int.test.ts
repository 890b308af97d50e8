import assert from 'node:assert/strict';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, afterEach, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import {
  copyDefinition,
  digestDefinition,
} from '../../../../noded/provision/os/definition-content.ts';
import { createTestChildren } from '../../support/test-children.ts';
import { createHostCopies } from '../../../../noded/provision/os/host-copies.ts';
import { loadDefinition } from '../../../../noded/provision/os/load-definition.ts';

let dir = '';
let os = '';
let outside = '';

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-content-'));
  os = join(dir, 'os/debian');
  outside = join(dir, 'etc');
  await mkdir(join(os, 'untrusted'), { recursive: true });
  await mkdir(join(os, 'hooks'));
  await mkdir(outside);
  await writeFile(join(outside, 'variants.list'), 'small\n');
  await writeFile(join(os, 'ganeti_api_version'), '20\n');
  await writeFile(join(os, 'parameters.list'), 'mirror x\n');
  await symlink(join(outside, 'variants.list'), join(os, 'variants.list'));
  await symlink('untrusted', join(os, 'also'));
  await writeFile(join(os, 'hooks/10-a.yaml'), 'a\n');
  for (const name of ['create', 'import', 'export', 'rename', 'verify', 'untrusted/create'])
    await writeFile(join(os, name), '#!/bin/sh\n. ./common.sh\n', { mode: 0o755 });
  await writeFile(join(os, 'common.sh'), 'echo "$PWD"\n');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const isInvalid = (error: unknown): boolean => isAppError(error, 'OS_INVALID');

test('every name, permission and byte of a definition counts, and what its links lead to', async () => {
  const seen = [await digestDefinition(os)];
  assert.equal(await digestDefinition(os), seen[0]);
  const changes: Record<string, () => Promise<unknown>> = {
    'a script': () => writeFile(join(os, 'create'), '#!/bin/sh\nevil\n'),
    'a file that scripts read': () => writeFile(join(os, 'common.sh'), 'evil\n'),
    'an untrusted script': () => writeFile(join(os, 'untrusted/create'), '#!/bin/sh\nevil\n'),
    'a hook': () => writeFile(join(os, 'hooks/10-a.yaml'), 'evil\n'),
    'the list of parameters': () => writeFile(join(os, 'parameters.list'), 'other x\n'),
    'what a link leads to': () => writeFile(join(outside, 'variants.list'), 'large\n'),
    'a permission': () => chmod(join(os, 'common.sh'), 0o755),
    'a permission of a folder': () => chmod(join(os, 'hooks'), 0o777),
    'a new file': () => writeFile(join(os, 'new'), ''),
    'a name': () => rename(join(os, 'new'), join(os, 'newer')),
    'a folder': () => mkdir(join(os, 'newest')),
    'a link': () => symlink('hooks', join(os, 'link')),
  };
  for (const [what, change] of Object.entries(changes)) {
    await change();
    const digest = await digestDefinition(os);
    assert.ok(!seen.includes(digest), what);
    seen.push(digest);
  }
});

test('the same content has the same digest wherever it lies, and however old it is', async () => {
  const other = join(dir, 'copy');
  await mkdir(other);
  const digest = await copyDefinition(os, other);
  assert.equal(digest, await digestDefinition(os));
  assert.equal(await digestDefinition(other), digest);
  assert.ok((await lstat(join(other, 'variants.list'))).isFile());
  assert.equal(await readFile(join(other, 'also/create'), 'utf8'), '#!/bin/sh\n. ./common.sh\n');
});

test('links that lead to a folder outside are refused, by whatever way', async () => {
  for (const leadsTo of ['/', outside, '../..', 'hooks/../../..', 'untrusted/../../../etc', '..']) {
    const path = join(os, 'out');
    await symlink(leadsTo, path);
    await assert.rejects(digestDefinition(os), isInvalid, leadsTo);
    await rm(path);
  }
});

test('a link to nowhere is not in the copy, so that nobody can put something there afterwards', async () => {
  await symlink(join(outside, 'later'), join(os, 'nowhere'));
  const before = await digestDefinition(os);
  const copy = join(dir, 'copy');
  await mkdir(copy);
  assert.equal(await copyDefinition(os, copy), before);
  await assert.rejects(lstat(join(copy, 'nowhere')));
  await writeFile(join(outside, 'later'), 'evil\n');
  assert.notEqual(await digestDefinition(os), before);
});

test('what is no file, folder or link is refused at once, and so is what has no end', async () => {
  await run('mkfifo', [join(os, 'fifo')]);
  await assert.rejects(digestDefinition(os), isInvalid);
  await rm(join(os, 'fifo'));
  await symlink('/dev/zero', join(os, 'zero'));
  await assert.rejects(digestDefinition(os), isInvalid);
  await rm(join(os, 'zero'));
  const sparse = join(os, 'sparse');
  await run('truncate', ['-s', '1T', sparse]);
  await assert.rejects(digestDefinition(os), /larger than 256 MiB/);
  await rm(sparse);
  await mkdir(join(os, 'd/'.repeat(40)), { recursive: true });
  await assert.rejects(digestDefinition(os), /nested too deep/);
});

test('what runs is a copy that only root can enter, and that a change of the original does not reach', async () => {
  const copies = createHostCopies(
    join(dir, 'copies'),
    createTestChildren(join(dir, 'children')).launch,
  );
  const definition = await loadDefinition(os);
  const digest = await digestDefinition(os);
  {
    await using copy = await copies.make(definition, digest);
    assert.equal((await lstat(join(dir, 'copies'))).mode & 0o777, 0o700);
    await writeFile(join(os, 'common.sh'), 'echo evil\n');
    const script = copy.pathOf(join(os, 'create'));
    const { stdout } = await run(script, [], { cwd: copy.definition.path });
    assert.equal(stdout, copy.definition.path);
    assert.deepEqual([copy.definition.name, copy.definition.variants], ['debian', ['small']]);
  }
  await assert.rejects(copies.make(definition, digest), (error) =>
    isAppError(error, 'OS_NOT_TRUSTED'),
  );
  assert.deepEqual(await readdir(join(dir, 'copies')), [], 'copies are left behind');
});
