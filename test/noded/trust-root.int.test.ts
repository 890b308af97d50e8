import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { requireTrustedRoot } from '../../noded/trust-root.ts';

let top = '';
const checkTrustedPath = (root: string) => requireTrustedRoot(createRootPaths(root));
const refused = { code: 'HOST_PREREQUISITE' };
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-trust-'));
});
after(() => rm(top, { recursive: true, force: true }));

async function folder(name: string, mode: number): Promise<string> {
  const path = join(top, name);
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
  return path;
}

test('a root that only root can write is taken, below a sticky folder too', async () => {
  await checkTrustedPath(await folder('plain', 0o755));
  await folder('sticky', 0o1777);
  await checkTrustedPath(await folder('sticky/own', 0o700));
});

test('a root below or at a folder that somebody else can write is refused', async () => {
  await folder('open', 0o777);
  await assert.rejects(checkTrustedPath(await folder('open/own', 0o700)), refused);
  await assert.rejects(checkTrustedPath(join(top, 'open')), refused);
  await assert.rejects(
    checkTrustedPath(join(top, 'sticky')),
    refused,
    'files made in it are ours only until then',
  );
  const foreign = await folder('foreign', 0o755);
  await chown(foreign, 65_534, 65_534);
  await assert.rejects(checkTrustedPath(await folder('foreign/own', 0o700)), refused);
  const group = await folder('group', 0o775);
  await checkTrustedPath(group);
  await chown(group, 0, 65_534);
  await assert.rejects(checkTrustedPath(group), refused);
});

test('a link counts by who made it and by where it leads', async () => {
  const target = join(top, 'plain');
  await symlink(target, join(top, 'link'));
  await checkTrustedPath(join(top, 'link'));
  await symlink(join(top, 'open/own'), join(top, 'away'));
  await assert.rejects(checkTrustedPath(join(top, 'away')), refused);
  await symlink(join(top, 'circle'), join(top, 'circle'));
  await assert.rejects(checkTrustedPath(join(top, 'circle')), { code: 'ELOOP' });
});

test('what is below the root already is looked at too', async () => {
  const root = await folder('later', 0o755);
  await folder('later/var/lib', 0o777);
  await assert.rejects(checkTrustedPath(root), refused);
});

test('the daemon does not start on such a root, and says what to do', async () => {
  const noded = join(import.meta.dirname, '../../noded/main.ts');
  const { status, stderr } = spawnSync(process.execPath, [noded], {
    env: { ...process.env, GNT_ROOT: join(top, 'open/own') },
    encoding: 'utf8',
  });
  assert.equal(status, 2, stderr);
  assert.match(stderr, /error\[HOST_PREREQUISITE\]: .*open.*\nhint: chmod go-w/);
});
