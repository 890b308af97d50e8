import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fc } from '../../../lab/fast-check.ts';
import { pack } from 'tar-stream';
import { END, entry, pax } from '../../hostile/tar-bytes.ts';
import { overlayPackage, unpackTar } from '../../../../appliance/agent/overlay/package.ts';
import { isAppError } from '#shared/errors/app-error.ts';

let directory = '';
/** The packer's files, the guest's root, and files that must stay unchanged. */
let source = '';
let root = '';
let outside = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-overlay-'));
  source = join(directory, 'source');
  root = join(directory, 'root');
  outside = join(directory, 'outside');
  for (const path of [source, root, outside]) mkdirSync(path);
  writeFileSync(join(outside, 'kept'), 'kept');
});
afterEach(() => rmSync(directory, { recursive: true }));

function tar(...args: string[]): Buffer {
  return execFileSync('tar', ['-C', source, '-cf', '-', ...args], { maxBuffer: 1e9 });
}

interface Header {
  name: string;
  type?: 'file' | 'directory' | 'symlink' | 'link' | 'fifo' | 'block-device' | 'character-device';
  linkname?: string;
}
async function archive(...entries: (Header & { content?: string })[]): Promise<Buffer> {
  const stream = pack();
  for (const { content, ...header } of entries) stream.entry(header, content ?? '');
  stream.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const refused = (code: string, name: string) => (error: unknown) =>
  isAppError(error, code as never) && error.message.includes(name);

test('keeps owners, modes, times, symbolic links and hard links as GNU tar packed them', async () => {
  mkdirSync(join(source, 'etc/deep'), { recursive: true });
  writeFileSync(join(source, 'etc/a'), 'content of a');
  chownSync(join(source, 'etc/a'), 1234, 4321);
  chmodSync(join(source, 'etc/a'), 0o4751);
  utimesSync(join(source, 'etc/a'), 1_000_000_000, 1_000_000_000);
  linkSync(join(source, 'etc/a'), join(source, 'etc/b'));
  symlinkSync('/usr/share/zoneinfo/UTC', join(source, 'etc/localtime'));
  symlinkSync('../etc/a', join(source, 'etc/relative'));
  utimesSync(join(source, 'etc/deep'), 900_000_000, 900_000_000);
  await unpackTar(tar('.'), root);
  const a = lstatSync(join(root, 'etc/a'));
  assert.deepEqual(
    [a.uid, a.gid, a.mode & 0o7777, a.mtimeMs, a.nlink],
    [1234, 4321, 0o4751, 1_000_000_000_000, 2],
  );
  assert.equal(lstatSync(join(root, 'etc/b')).ino, a.ino);
  assert.equal(readlinkSync(join(root, 'etc/localtime')), '/usr/share/zoneinfo/UTC');
  assert.equal(readlinkSync(join(root, 'etc/relative')), '../etc/a');
  assert.equal(lstatSync(join(root, 'etc/deep')).mtimeMs, 900_000_000_000);
});

for (const format of ['gnu', 'pax', 'ustar']) {
  test(`keeps names of more than 100 bytes in ${format} format`, async () => {
    const name = format === 'ustar' ? `${'d'.repeat(90)}/${'f'.repeat(90)}` : 'x'.repeat(250);
    mkdirSync(join(source, 'd'.repeat(90)));
    writeFileSync(join(source, name), 'long');
    await unpackTar(tar(`--format=${format}`, '.'), root);
    assert.equal(readFileSync(join(root, name), 'utf8'), 'long');
  });
}

for (const [what, args] of [
  ['old GNU', ['--format=gnu']],
  ['pax 0.0', ['--format=pax', '--sparse-version=0.0']],
  ['pax 0.1', ['--format=pax', '--sparse-version=0.1']],
  ['pax 1.0', ['--format=pax', '--sparse-version=1.0']],
] as const) {
  test(`restores a sparse file of the ${what} format with its holes`, async () => {
    const file = join(source, 'sparse');
    execFileSync('sh', [
      '-c',
      `for at in 0 3 9 12 20 31; do printf "block $at" | dd of=${file} bs=1M seek=$at conv=notrunc status=none; done`,
    ]);
    truncateSync(file, 40 * 1024 * 1024);
    writeFileSync(join(source, 'zz-next'), 'the entry after it');
    await unpackTar(tar('-S', ...args, 'sparse', 'zz-next'), root);
    assert.deepEqual(readFileSync(join(root, 'sparse')), readFileSync(file));
    assert.ok(statSync(join(root, 'sparse')).blocks * 512 < 1024 * 1024, 'the holes were filled');
    assert.equal(readFileSync(join(root, 'zz-next'), 'utf8'), 'the entry after it');
  });
}

test('keeps extended attributes, and binary attributes byte for byte', async () => {
  writeFileSync(join(source, 'program'), '#!/bin/sh\n');
  // cap_net_raw+ep as the kernel stores it: invalid UTF-8.
  const capability = '0x0100000200200000000000000000000000000000';
  const binary = '0xff00fe0a3d';
  execFileSync('setfattr', [
    '-n',
    'security.capability',
    '-v',
    capability,
    join(source, 'program'),
  ]);
  execFileSync('setfattr', ['-n', 'user.binary', '-v', binary, join(source, 'program')]);
  await unpackTar(tar('--xattrs', '--xattrs-include=*', 'program'), root);
  const found = execFileSync('getfattr', ['-d', '-m', '-', '-e', 'hex', join(root, 'program')], {
    encoding: 'utf8',
  });
  assert.match(found, new RegExp(`security.capability=${capability}`));
  assert.match(found, new RegExp(`user.binary=${binary}`));
});

test('attributes of other systems are skipped with one log line, and attributes of Linux are kept', async () => {
  const named = (name: string, key: string): Buffer =>
    Buffer.concat([pax([[key, 'x']]), entry({ name }, 'x')]);
  const bytes = Buffer.concat([
    named('a', 'SCHILY.xattr.com.apple.provenance'),
    named('b', 'SCHILY.xattr.com.apple.provenance'),
    named('c', 'LIBARCHIVE.xattr.com.apple.quarantine'),
    named('d', 'SCHILY.xattr.system.nfs4_acl'),
    named('e', 'SCHILY.xattr.user.kept'),
    named('f', 'SCHILY.xattr.trusted.kept'),
    END,
  ]);
  const lines: string[] = [];
  await overlayPackage(Readable.from([gzipSync(bytes)]), root, (line) => lines.push(line));
  assert.deepEqual(lines, [
    'skipped extended attributes of other systems: "com.apple.provenance" (2), "com.apple.quarantine" (1), "system.nfs4_acl" (1)',
  ]);
  assert.deepEqual(readdirSync(root), ['a', 'b', 'c', 'd', 'e', 'f']);
  const found = execFileSync('getfattr', ['-d', '-m', '-', 'e', 'f'], { cwd: root });
  assert.match(found.toString(), /user\.kept="x"[\s\S]*trusted\.kept="x"/);
});

test('replaces a file without changing its hard links and link targets, and keeps the owner of the root', async () => {
  writeFileSync(join(outside, 'linked'), 'original');
  linkSync(join(outside, 'linked'), join(root, 'file'));
  symlinkSync(join(outside, 'kept'), join(root, 'link'));
  chownSync(source, 777, 777);
  writeFileSync(join(source, 'file'), 'new');
  writeFileSync(join(source, 'link'), 'new');
  await unpackTar(tar('.'), root);
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'new');
  assert.equal(lstatSync(join(root, 'link')).isFile(), true);
  assert.equal(readFileSync(join(outside, 'linked'), 'utf8'), 'original');
  assert.equal(readFileSync(join(outside, 'kept'), 'utf8'), 'kept');
  assert.equal(lstatSync(root).uid, 0);
});

test('puts the contents of a directory where a symbolic link of the guest leads, inside the root', async () => {
  mkdirSync(join(root, 'usr/lib'), { recursive: true });
  symlinkSync('usr/lib', join(root, 'lib'));
  symlinkSync('/usr/lib', join(root, 'absolute'));
  mkdirSync(join(source, 'lib'));
  mkdirSync(join(source, 'absolute'));
  writeFileSync(join(source, 'lib/one'), '1');
  writeFileSync(join(source, 'absolute/two'), '2');
  await unpackTar(tar('.'), root);
  assert.equal(readlinkSync(join(root, 'lib')), 'usr/lib');
  assert.deepEqual(readdirSync(join(root, 'usr/lib')).sort(), ['one', 'two']);
});

for (const target of ['../outside', '../../../../../../../../../tmp', '/outside']) {
  test(`a symbolic link of the guest to ${target} does not lead a write out of the root`, async () => {
    symlinkSync(target, join(root, 'var'));
    const bytes = await archive({ name: 'var/escaped', content: 'x' });
    await assert.rejects(unpackTar(bytes, root), refused('PACKAGE_INVALID', 'var/escaped'));
    assert.deepEqual(readdirSync(outside), ['kept']);
    assert.equal(existsSync('/tmp/escaped'), false);
    assert.equal(existsSync('/outside'), false);
  });
}

test('a link in the package does not lead later entries out of the root', async () => {
  const bytes = await archive(
    { name: 'door', type: 'symlink', linkname: outside },
    { name: 'door/escaped', content: 'x' },
  );
  await assert.rejects(unpackTar(bytes, root), refused('PACKAGE_INVALID', 'door/escaped'));
  assert.deepEqual(readdirSync(outside), ['kept']);
  mkdirSync(join(root, outside), { recursive: true });
  await unpackTar(bytes, root);
  assert.deepEqual(readdirSync(outside), ['kept']);
  assert.equal(readFileSync(join(root, outside, 'escaped'), 'utf8'), 'x');
});

test('refuses paths and links that lead outside, devices and FIFOs by name', async () => {
  const cases: [Header & { content?: string }, string][] = [
    [{ name: '/etc/absolute', content: 'x' }, '/etc/absolute'],
    [{ name: 'a/../../climbs', content: 'x' }, 'a/../../climbs'],
    [{ name: 'a/out', type: 'symlink', linkname: '../../outside' }, 'a/out'],
    [{ name: 'hard', type: 'link', linkname: '../outside/kept' }, '../outside/kept'],
    [{ name: 'hard', type: 'link', linkname: '/etc/passwd' }, '/etc/passwd'],
    [{ name: 'dev/sda', type: 'block-device' }, 'dev/sda'],
    [{ name: 'dev/null', type: 'character-device' }, 'dev/null'],
    [{ name: 'run/pipe', type: 'fifo' }, 'run/pipe'],
  ];
  for (const [entry, name] of cases)
    await assert.rejects(
      archive(entry).then((bytes) => unpackTar(bytes, root)),
      refused('PACKAGE_UNSAFE', name),
      name,
    );
  assert.deepEqual(readdirSync(outside), ['kept']);
});

test('a hard link in the package does not reach through a symbolic link of the guest', async () => {
  symlinkSync(outside, join(root, 'way'));
  const bytes = await archive({ name: 'copy', type: 'link', linkname: 'way/kept' });
  await assert.rejects(unpackTar(bytes, root), refused('PACKAGE_INVALID', 'way/kept'));
});

test('random links and names in a package change nothing outside the root', async () => {
  const name = fc.array(fc.constantFrom('a', 'b', '..', '.', '', 'way'), {
    minLength: 1,
    maxLength: 5,
  });
  const target = fc
    .tuple(fc.constantFrom('', '/', '/../'), name)
    .map(([start, parts]) => start + parts.join('/'));
  const entry = fc.record({
    name: name.map((parts) => parts.join('/')),
    type: fc.constantFrom(
      'file' as const,
      'directory' as const,
      'symlink' as const,
      'link' as const,
    ),
    target,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(entry, { minLength: 1, maxLength: 8 }),
      target,
      async (entries, way) => {
        rmSync(root, { recursive: true });
        mkdirSync(root);
        if (way !== '') symlinkSync(way, join(root, 'way'));
        const headers = entries.map(({ name: path, type, target: linkname }) => ({
          name: path === '' ? 'x' : path,
          type,
          ...(type === 'symlink' || type === 'link' ? { linkname: linkname || 'a' } : {}),
          ...(type === 'file' ? { content: 'written' } : {}),
        }));
        await archive(...headers)
          .then((bytes) => unpackTar(bytes, root))
          .catch((error: unknown) => {
            if (!isAppError(error) && !(error instanceof Error && 'errno' in error)) throw error;
          });
        assert.deepEqual(readdirSync(directory).sort(), ['outside', 'root', 'source']);
        assert.deepEqual(readdirSync(outside), ['kept']);
        assert.equal(readFileSync(join(outside, 'kept'), 'utf8'), 'kept');
      },
    ),
    { numRuns: 50 },
  );
});

test('refuses a package that is not gzip, not tar, truncated or aborted with the reason', async () => {
  writeFileSync(join(source, 'random'), execFileSync('head', ['-c', '200000', '/dev/urandom']));
  const whole = gzipSync(tar('.'));
  const overlay = (bytes: Buffer): Promise<unknown> => overlayPackage(Readable.from([bytes]), root);
  await assert.rejects(
    overlay(Buffer.from('<html>not found</html>')),
    refused('PACKAGE_INVALID', 'gzip'),
  );
  await assert.rejects(
    overlay(gzipSync(Buffer.alloc(2048, 'no tar '))),
    refused('PACKAGE_INVALID', 'tar'),
  );
  await assert.rejects(overlay(whole.subarray(0, 100_000)), refused('PACKAGE_INVALID', 'gzip'));
  await assert.rejects(overlay(Buffer.alloc(0)), refused('PACKAGE_INVALID', ''));
  const cutOff = new Readable({ read: () => undefined });
  cutOff.push(whole.subarray(0, 50_000));
  setImmediate(() => cutOff.destroy(new Error('aborted')));
  await assert.rejects(overlayPackage(cutOff, root), refused('PACKAGE_DOWNLOAD', 'aborted'));
  await overlay(whole);
  assert.equal(statSync(join(root, 'random')).size, 200_000);
});
