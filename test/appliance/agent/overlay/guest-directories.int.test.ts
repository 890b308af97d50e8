import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { extractTar } from '../../../../appliance/agent/overlay/extract.ts';
import {
  formatOwner,
  GuestDirectories,
} from '../../../../appliance/agent/overlay/guest-directories.ts';
import { END, entry, type HeaderFields, pax } from '../../hostile/tar-bytes.ts';

let root = '';
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'gnt-guest-directories-'))));
afterEach(() => rmSync(root, { recursive: true }));

const guest = (path: string, mode = 0o755): void => {
  mkdirSync(join(root, path), { recursive: true });
  chmodSync(join(root, path), mode);
};
const owner = (path: string): string => formatOwner(lstatSync(join(root, path)));
/** An entry owned by user 1000. */
const by = (name: string, mode: number, more: HeaderFields = {}): Buffer =>
  entry({ name, mode, uid: 1000, gid: 1000, ...more }, more.type === '0' ? 'x' : '');
const directory = (name: string, mode = 0o700): Buffer => by(name, mode, { type: '5' });
const file = (name: string): Buffer => by(name, 0o600, { type: '0' });
const link = (name: string, target: string): Buffer => by(name, 0o777, { type: '2', link: target });

async function unpack(...entries: readonly Buffer[]): Promise<string[]> {
  const lines: string[] = [];
  async function* archive(): AsyncGenerator<Buffer> {
    yield Buffer.concat([...entries, END]);
  }
  await extractTar(archive(), root, (line) => lines.push(line));
  return lines;
}

test("the guest's directories keep owner and mode, and the log names the differences of the package", async () => {
  guest('etc');
  guest('tmp', 0o1777);
  guest('root', 0o700);
  const lines = await unpack(
    ...[
      directory('./'),
      directory('./etc/'),
      directory('./tmp/', 0o755),
      directory('./root', 0o775),
    ],
    ...[file('./etc/app.conf'), by('./srv/', 0o711, { type: '5' })],
    by('./root/', 0o700, { type: '5', uid: 0, gid: 0 }),
  );
  assert.deepEqual(['etc', 'tmp', 'root', 'etc/app.conf', 'srv'].map(owner), [
    '0:0 0755',
    '0:0 01777',
    '0:0 0700',
    '1000:1000 0600',
    '1000:1000 0711',
  ]);
  assert.deepEqual(lines, [
    'directory "/etc" keeps owner and mode 0:0 0755; the package has 1000:1000 0700',
    'directory "/tmp" keeps owner and mode 0:0 01777; the package has 1000:1000 0755',
    'directory "/root" keeps owner and mode 0:0 0700; the package has 1000:1000 0775',
  ]);
});

test("a package's own directories get its owner and mode wherever their entries are", async () => {
  guest('opt');
  await unpack(file('opt/x/f'), directory('opt/x/'), directory('y/'), directory('y/', 0o750));
  assert.deepEqual(['opt/x', 'y', 'opt'].map(owner), [
    ...['1000:1000 0700', '1000:1000 0750', '0:0 0755'],
  ]);
});

test("a directory behind links keeps its owner when the guest has it, and gets the package's owner otherwise", async () => {
  guest('usr/lib/systemd');
  guest('data/old');
  symlinkSync('usr/lib', join(root, 'lib'));
  symlinkSync('/usr/lib', join(root, 'absolute'));
  await unpack(
    ...[directory('lib/'), directory('lib/systemd/'), directory('absolute/systemd/')],
    ...[file('lib/new/f'), directory('usr/lib/new/')],
    ...[link('s', '/data'), directory('s/old/'), file('s/made/f'), directory('data/made/')],
    ...[by('t', 0o777, { type: '1', link: 's' }), directory('t/old/')],
  );
  assert.deepEqual(
    ['usr/lib', 'usr/lib/systemd', 'data/old', 'usr/lib/new', 'data/made'].map(owner),
    ['0:0 0755', '0:0 0755', '0:0 0755', '1000:1000 0700', '1000:1000 0700'],
  );
  assert.ok(lstatSync(join(root, 'lib')).isSymbolicLink());
});

test("a directory that the package replaces has the package's owner and mode", async () => {
  guest('empty');
  symlinkSync('/elsewhere', join(root, 'dangling'));
  await unpack(file('empty'), directory('empty/'), directory('dangling/'), file('dangling/f'));
  assert.equal(owner('empty'), '1000:1000 0700');
  assert.equal(owner('dangling'), '1000:1000 0700');
});

test("ACLs and attributes of the package do not reach the guest's directories", async () => {
  guest('etc');
  const attributes = pax([
    ['SCHILY.xattr.user.a', '1'],
    ['SCHILY.acl.access', 'user::rwx,user:1000:rwx,group::r-x,mask::rwx,other::r-x'],
  ]);
  await unpack(attributes, directory('etc/'), file('etc/f'));
  const read = (path: string): string =>
    execFileSync('getfattr', ['-d', '-m', '-', path], { cwd: root, encoding: 'utf8' });
  assert.equal(read('etc'), '');
  assert.equal(owner('etc/f'), '1000:1000 0600');
});

test('a package of 20,000 long links is refused', () => {
  const directories = new GuestDirectories(root);
  const target = 'x'.repeat(4000);
  const take = (index: number): unknown =>
    directories.take({
      ...{ isRoot: false, contentBytes: 0, kind: 'symlink', components: [`l${index}`], target },
      ...{ mode: 0o777, uid: 0, gid: 0, leftOut: [] },
    });
  assert.throws(
    () => {
      for (let index = 0; index < 20_000; index += 1) take(index);
    },
    (error) => isAppError(error, 'PACKAGE_INVALID') && /links and directories/.test(error.message),
  );
});
