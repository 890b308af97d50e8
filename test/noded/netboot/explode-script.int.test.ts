import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { findInArchive, parseArchiveIndex } from '../../../noded/netboot/archive-index.ts';
import { EXPLODE_SCRIPT, TRAILER, TRAILER_BYTES } from '../../../noded/netboot/explode-script.ts';

/** Runs the script on a tar archive, with a file instead of the appliance's disk. */
async function explode(
  t: TestContext,
  archive: Buffer,
): Promise<{ readonly output: Buffer; readonly errors: string; readonly status: number | null }> {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-explode-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, 'archive');
  await writeFile(path, archive);
  const script = EXPLODE_SCRIPT.replace('/dev/disk/by-id/virtio-disk0', path);
  assert.notEqual(script, EXPLODE_SCRIPT);
  await writeFile(join(dir, 'script'), script);
  const { stdout, stderr, status } = spawnSync('/usr/bin/perl', [join(dir, 'script')], {
    env: { PATH: '/usr/bin:/bin', ARCHIVE_BYTES: String(archive.length) },
    timeout: 30_000,
    maxBuffer: 1 << 26,
  });
  return { output: stdout, errors: stderr.toString(), status };
}

async function tarOf(entries: readonly (readonly [string, Buffer | string])[]): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of entries) {
    if (typeof content === 'string') archive.entry({ name, type: 'symlink', linkname: content });
    else archive.entry({ name }, content);
  }
  archive.finalize();
  return buffer(archive);
}

function compress(program: string, bytes: Buffer): Buffer {
  const { stdout, status } = spawnSync(program, ['-c'], { input: bytes, maxBuffer: 1 << 26 });
  assert.equal(status, 0, program);
  return stdout;
}

const KERNEL = Buffer.alloc(1_300_000, 'kernel');
const LONG = `${'folder/'.repeat(20)}${'n'.repeat(200)}`;

test('a tar archive gets a valid index, in place where it is not compressed', async (t) => {
  const tar = await tarOf([
    ['./boot/linux', KERNEL],
    [LONG, Buffer.from('long')],
    ['vmlinuz', 'boot/linux'],
    ['dists/stable', 'bookworm'],
    ['dists/bookworm/Release', Buffer.from('release')],
    ['out', '../../etc/passwd'],
    ['../out', Buffer.from('out')],
    ['boot/line\nbreak', Buffer.from('refused')],
  ]);
  const compressed = ['xz', 'zstd', 'bzip2'].map((program) => compress(program, tar));
  for (const archive of [tar, gzipSync(tar), ...compressed]) {
    const { output, errors, status } = await explode(t, archive);
    assert.equal(status, 0, errors);
    assert.match(errors, /^3 files(, where they .*)?, 2 links, 3 names left out$/m);
    const end = output.length - TRAILER_BYTES;
    const [, kind, begin] = TRAILER.exec(output.subarray(end).toString()) ?? [];
    const index = output.subarray(Number(begin), end);
    assert.deepEqual(
      [kind, Number(begin) > 0],
      archive === tar ? ['in-place', false] : ['index', true],
    );
    const data = archive === tar ? tar : output.subarray(0, Number(begin));
    await parseArchiveIndex(index.toString(), data.length);
    const contentOf = (path: string): Buffer | undefined => {
      const extent = findInArchive(index, path);
      return extent && data.subarray(extent.offset, extent.offset + extent.sizeBytes);
    };
    for (const path of ['boot/linux', 'vmlinuz']) assert.ok(contentOf(path)?.equals(KERNEL), path);
    assert.equal(contentOf(LONG)?.toString(), 'long');
    assert.equal(contentOf('dists/stable/Release')?.toString(), 'release');
    assert.equal(contentOf('out'), undefined);
  }
});

function headerOf(name: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, 'latin1');
  header.write(`${'0'.repeat(11)}\0`, 124);
  header.write('        0ustar\x0000', 148);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

test('an archive of 100,000 names is opened, and an archive of 100,001 names is not', async (t) => {
  const names = Array.from({ length: 100_001 }, (_, at) => headerOf(String(at).padStart(6, '0')));
  const most = Buffer.concat([...names.slice(1), Buffer.alloc(1024)]);
  const taken = await explode(t, most);
  assert.equal(taken.status, 0, taken.errors);
  const index = taken.output.subarray(0, taken.output.length - TRAILER_BYTES).toString();
  assert.equal((await parseArchiveIndex(index, most.length)).files.size, 100_000);
  const { errors, status } = await explode(t, Buffer.concat([...names, Buffer.alloc(1024)]));
  assert.equal(status, 1);
  assert.match(errors, /the archive cannot be opened: it has more than 100000 names/);
});

test('the content of a folder entry is skipped', async (t) => {
  const archive = pack();
  archive.entry({ name: 'x/', type: 'file' }, 'content');
  archive.entry({ name: 'x/linux', type: 'file' }, 'kernel');
  archive.finalize();
  const tar = await buffer(archive);
  for (const each of [tar, gzipSync(tar)]) {
    const { output, errors, status } = await explode(t, each);
    assert.equal(status, 0, errors);
    assert.match(output.toString('latin1'), /\d+ 6 x\/linux\n/);
  }
});

test('a sparse file is refused by its name', async (t) => {
  for (const pax of [
    { 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.name': 'boot/linux' },
    { 'GNU.sparse.size': '9999', 'GNU.sparse.numblocks': '1' },
  ]) {
    const archive = pack();
    archive.entry({ name: 'boot/linux', pax }, '1\n0\n512\n');
    archive.finalize();
    const { errors, status } = await explode(t, await buffer(archive));
    assert.equal(status, 1, errors);
    assert.match(errors, /boot\/linux in it is a sparse file/);
  }
});

test('a malformed or truncated archive is refused with the reason', async (t) => {
  const tar = await tarOf([['boot/linux', KERNEL]]);
  const damaged = Buffer.from(tar);
  damaged[0] = 0x7a;
  const cases: readonly (readonly [Buffer, RegExp])[] = [
    [Buffer.alloc(100_000, 'junk'), /it is neither ISO 9660 nor tar/],
    [damaged, /it is neither ISO 9660 nor tar/],
    [tar.subarray(0, 1_000_000), /it ends in the middle of a file/],
    [tar.subarray(0, 300), /it ends in the middle of a header/],
    [gzipSync(tar).subarray(0, -10), /it is damaged or cut|it ends in the middle/],
    [Buffer.alloc(4096), /there is nothing in it/],
  ];
  for (const [archive, expected] of cases) {
    const { errors, status } = await explode(t, archive);
    assert.equal(status, 1, errors);
    assert.match(errors, /the archive cannot be opened: /);
    assert.match(errors, expected);
  }
});
