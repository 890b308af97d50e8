import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { requireTrustedRoot } from '../../../noded/wiring/trust-root.ts';

let top = '';
const checkTrustedPath = (root: string) => requireTrustedRoot(createRootPaths(root));
const refused = { code: 'HOST_PREREQUISITE' };
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-trust-'));
});
after(() => rm(top, { recursive: true, force: true }));

/** ACL_UNDEFINED_ID of linux/posix_acl_xattr.h: id of an entry without a named user or group. */
const NO_ID = 0xffff_ffff;

interface AclEntry {
  readonly tag: number;
  readonly permissions: number;
  readonly id: number;
}

/**
 * Writes an access list as setfacl(1) does. The kernel accepts entries only in the order of their
 * tags.
 */
function setAccessList(
  path: string,
  entries: readonly AclEntry[],
  kind: 'access' | 'default' = 'access',
): void {
  const bytes = Buffer.alloc(4 + 8 * entries.length);
  bytes.writeUInt32LE(2);
  for (const [index, { tag, permissions, id }] of entries.entries()) {
    bytes.writeUInt16LE(tag, 4 + index * 8);
    bytes.writeUInt16LE(permissions, 6 + index * 8);
    bytes.writeUInt32LE(id, 8 + index * 8);
  }
  const value = `0x${bytes.toString('hex')}`;
  const args = ['-n', `system.posix_acl_${kind}`, '-v', value, path];
  const { status, stderr } = spawnSync('setfattr', args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

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

test('an access list counts by whom it lets write, its mask and the group taken together', async () => {
  const nobody = { tag: 0x02, permissions: 7, id: 65_534 };
  const cases = [
    { name: 'acl-user', entries: [nobody], mask: 7, taken: false },
    { name: 'acl-masked', entries: [nobody], mask: 5, taken: true },
    { name: 'acl-reader', entries: [{ ...nobody, permissions: 5 }], mask: 7, taken: true },
    { name: 'acl-root', entries: [{ ...nobody, id: 0 }], mask: 7, taken: true },
    { name: 'acl-group', entries: [{ ...nobody, tag: 0x08 }], mask: 7, taken: false },
    { name: 'acl-group-0', entries: [{ tag: 0x08, permissions: 7, id: 0 }], mask: 7, taken: true },
  ];
  for (const { name, entries, mask, taken } of cases) {
    const path = await folder(name, 0o755);
    setAccessList(path, [
      { tag: 0x01, permissions: 7, id: NO_ID },
      ...entries.filter(({ tag }) => tag === 0x02),
      { tag: 0x04, permissions: 5, id: NO_ID },
      ...entries.filter(({ tag }) => tag === 0x08),
      { tag: 0x10, permissions: mask, id: NO_ID },
      { tag: 0x20, permissions: 5, id: NO_ID },
    ]);
    if (taken) await checkTrustedPath(path);
    else await assert.rejects(checkTrustedPath(path), { ...refused, hint: /setfacl -b/ }, name);
  }
});

test('a default access list counts by whom it lets write what is made in the folder', async () => {
  const path = await folder('heirs', 0o755);
  // Another user needs to reach the folder.
  await chmod(top, 0o711);
  const entries = (permissions: number) => [
    { tag: 0x01, permissions: 7, id: NO_ID },
    { tag: 0x02, permissions, id: 65_534 },
    { tag: 0x04, permissions: 5, id: NO_ID },
    { tag: 0x10, permissions: 7, id: NO_ID },
    { tag: 0x20, permissions: 5, id: NO_ID },
  ];
  setAccessList(path, entries(5), 'default');
  await checkTrustedPath(path);
  setAccessList(path, entries(7), 'default');
  await mkdir(join(path, 'made'));
  const made = spawnSync('setpriv', [
    ...['--reuid=65534', '--regid=65534', '--clear-groups', 'touch', join(path, 'made/file')],
  ]);
  assert.equal(made.status, 0, 'it is as open as that');
  await assert.rejects(checkTrustedPath(path), { ...refused, hint: /setfacl -k/ });
});

test('nothing is made below a folder that somebody else can write', async () => {
  const open = await folder('open', 0o777);
  await assert.rejects(checkTrustedPath(join(open, 'new/root')), refused);
  assert.deepEqual(await readdir(open), ['own']);
});

test('a link counts by who made it and by where it leads', async () => {
  const target = join(top, 'plain');
  await symlink(target, join(top, 'link'));
  await checkTrustedPath(join(top, 'link'));
  await symlink(join(top, 'open/own'), join(top, 'away'));
  await assert.rejects(checkTrustedPath(join(top, 'away')), refused);
  await symlink(join(top, 'circle'), join(top, 'circle'));
  await assert.rejects(checkTrustedPath(join(top, 'circle')), refused);
});

test('what is below the root already is looked at too', async () => {
  const root = await folder('later', 0o755);
  await folder('later/var/lib', 0o777);
  await assert.rejects(checkTrustedPath(root), refused);
});

test('the daemon does not start on such a root, and says what to do', async () => {
  const noded = join(import.meta.dirname, '../../../noded/main.ts');
  const { status, stderr } = spawnSync(process.execPath, [noded], {
    env: { ...process.env, GNT_ROOT: join(top, 'open/own') },
    encoding: 'utf8',
  });
  assert.equal(status, 2, stderr);
  assert.match(stderr, /error\[HOST_PREREQUISITE\]: .*open.*\nhint: Run chmod go-w/);
});
