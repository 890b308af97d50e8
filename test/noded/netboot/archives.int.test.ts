import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import {
  type BootArchives,
  openBootArchives,
  type ReadArchive,
} from '../../../noded/netboot/archives.ts';
import type { BootTree } from '../../../noded/content/downloads/boot-tree.ts';

const MIB = 1 << 20;
const CONTENT = 'b'.repeat(64);

const nobody = (): ReadonlySet<string> => new Set();

async function folder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-archives-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function nextTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await setImmediate();
}

/** An appliance's output: the files, their index, and its offset. */
function written(
  files: string,
  index: string,
  { at = Buffer.byteLength(files), kind = 'index' } = {},
): Buffer {
  return Buffer.from(`${files}${index}${`gnt-${kind} ${at}`.padEnd(63)}\n`);
}

const UNREAD: ReadArchive = {
  ...{ path: '/nonexistent', sizeBytes: 0, verifyUnchanged: async () => undefined },
};

async function keep(
  archives: BootArchives,
  isoFile: string,
  bytes: Buffer,
  {
    sha256 = CONTENT,
    said = bytes.length,
    archive = UNREAD,
    signal = AbortSignal.timeout(10_000),
  } = {},
): Promise<number> {
  await using target = await archives.create(sha256, MIB);
  await writeFile(target.path, bytes, { flag: 'r+' });
  return await target.keep(isoFile, said, archive, signal);
}

async function read(archives: BootArchives, isoFile: string, path: string): Promise<string> {
  return await readTree(treeOf(archives, isoFile), path);
}

function treeOf(archives: BootArchives, isoFile: string): BootTree | null {
  const sha256 = archives.contentOf(isoFile);
  return sha256 === undefined ? null : archives.tree(sha256);
}

async function readTree(tree: BootTree | null, path: string): Promise<string> {
  const answer = await tree?.open({
    ...{ path, method: 'GET', headers: {} },
    signal: AbortSignal.timeout(10_000),
  });
  if (answer?.kind !== 'slice') return String(answer?.kind);
  await using handle = answer.handle;
  const bytes = Buffer.alloc(answer.sizeBytes);
  await handle.read(bytes, 0, bytes.length, answer.offset);
  return bytes.toString();
}

test('an archive is found under each of its names, also after a restart', async (t) => {
  const dir = await folder(t);
  const archives = await openBootArchives(dir, nobody);
  assert.equal(archives.find('d.iso', ''), null);
  const bytes = written('kernelinitrd', '6 6 a b\n0 6 linux\nlink stable\tlinux\n');
  assert.equal(await keep(archives, 'd.iso', bytes), 2);
  assert.equal(await archives.name('same.iso', CONTENT), true);
  assert.equal(await archives.name('other.iso', 'c'.repeat(64)), false);

  const again = await openBootArchives(dir, nobody);
  for (const isoFile of ['d.iso', 'same.iso']) {
    assert.equal(await read(again, isoFile, 'linux'), 'kernel');
    assert.equal(await read(again, isoFile, 'a%20b'), 'initrd');
    assert.equal(await read(again, isoFile, 'stable'), 'kernel');
    for (const path of ['none', '', '%', '../names.json', '..%2fnames.json'])
      assert.equal(await read(again, isoFile, path), 'refusal', path);
  }
  assert.equal(again.find('d.iso', CONTENT)?.has('linux'), true);
  assert.equal(again.find('d.iso', 'c'.repeat(64)), null, 'another checksum than the BootEnv says');
  assert.equal(again.find('__proto__', ''), null);
});

test('the indexes of twelve archives stay in memory', async (t) => {
  const dir = await folder(t);
  const archives = await openBootArchives(dir, nobody);
  const contents = Array.from({ length: 12 }, (_, at) => at.toString(16).repeat(64));
  for (const sha256 of contents)
    await keep(archives, `${sha256}.iso`, written('kernel', '0 6 linux\n'), { sha256 });
  const readAll = (): Promise<readonly string[]> =>
    Promise.all(contents.map((sha256) => readTree(archives.tree(sha256), 'linux')));
  await readAll();
  for (const sha256 of contents) await rm(join(dir, `${sha256}.index`));
  assert.deepEqual(new Set(await readAll()), new Set(['kernel']));
});

test('an archive indexed in place is copied with mode 0600, and an index beyond its end is refused', async (t) => {
  const dir = await folder(t);
  const path = join(await folder(t), 'd.iso');
  await writeFile(path, 'head kernel tail', { mode: 0o644 });
  let isChanged = false;
  const archive: ReadArchive = {
    ...{ path, sizeBytes: 16 },
    verifyUnchanged: async () => {
      if (isChanged) throw new AppError('IMAGE_UNREADABLE', 'it was changed');
    },
  };
  const archives = await openBootArchives(dir, nobody);
  const inPlace = { kind: 'in-place' };
  assert.equal(await keep(archives, 'd.iso', written('', '5 6 linux\n', inPlace), { archive }), 1);
  await rm(path);
  const again = await openBootArchives(dir, nobody);
  assert.equal(await read(again, 'd.iso', 'linux'), 'kernel');
  const data = await stat(join(dir, `${CONTENT}.data`));
  assert.deepEqual([data.size, data.mode & 0o777], [16, 0o600]);

  const sha256 = 'c'.repeat(64);
  await writeFile(path, 'head kernel tail');
  const beyond = keep(again, 'e.iso', written('', '5 12 linux\n', inPlace), { sha256, archive });
  await assert.rejects(beyond, { code: 'IMAGE_INVALID' });
  isChanged = true;
  const changed = keep(again, 'e.iso', written('', '5 6 linux\n', inPlace), { sha256, archive });
  await assert.rejects(changed, { code: 'IMAGE_UNREADABLE' });
  isChanged = false;
  const signal = AbortSignal.abort(new Error('the daemon ends'));
  const index = written('', '5 6 linux\n', inPlace);
  const ended = keep(again, 'e.iso', index, { sha256, archive, signal });
  await assert.rejects(ended, /the daemon ends/);
  const left = (await readdir(dir)).sort();
  assert.deepEqual(left, [`${CONTENT}.data`, `${CONTENT}.index`, 'names.json']);
});

test('content without a name is removed', async (t) => {
  const dir = await folder(t);
  const archives = await openBootArchives(dir, nobody);
  await keep(archives, 'd.iso', written('old', '0 3 linux\n'));
  const sha256 = createHash('sha256').update('new').digest('hex');
  await keep(archives, 'd.iso', written('new', '0 3 linux\n'), { sha256 });
  assert.equal(await read(archives, 'd.iso', 'linux'), 'new');
  const left = (await readdir(dir)).sort();
  assert.deepEqual(left, [`${sha256}.data`, `${sha256}.index`, 'names.json'].sort());
});

test('content that an instance boots from is kept, also after a restart', async (t) => {
  const dir = await folder(t);
  const inUse = new Set([CONTENT]);
  const archives = await openBootArchives(dir, () => inUse);
  await keep(archives, 'd.iso', written('oldrd', '3 2 initrd\n0 3 linux\n'));
  const begun = treeOf(archives, 'd.iso');
  assert.equal(await readTree(begun, 'linux'), 'old');
  for (const sha256 of ['c'.repeat(64), 'd'.repeat(64)]) {
    await keep(archives, 'd.iso', written('newRD', '3 2 initrd\n0 3 linux\n'), { sha256 });
    assert.equal(await readTree(begun, 'initrd'), 'rd');
    assert.equal(await read(archives, 'd.iso', 'initrd'), 'RD');
  }
  const next = await openBootArchives(dir, () => inUse);
  assert.equal(await readTree(next.tree(CONTENT), 'linux'), 'old');
  inUse.clear();
  await next.dropUnnamed();
  const left = (await readdir(dir)).filter((file) => file.startsWith(CONTENT));
  assert.deepEqual(left, [], 'nobody boots from them any more');
});

test('archives are listed, and removing the last name removes the content', async (t) => {
  const dir = await folder(t);
  const inUse = new Set<string>();
  const archives = await openBootArchives(dir, () => inUse);
  const bytes = written('kernel', '0 6 linux\n');
  await keep(archives, 'd.iso', bytes);
  await archives.name('same.iso', CONTENT);
  const listed = { sha256: CONTENT, sizeBytes: bytes.length - 64 };
  assert.deepEqual(await archives.list(), [
    { isoFile: 'd.iso', ...listed },
    { isoFile: 'same.iso', ...listed },
  ]);
  assert.equal(await archives.remove('d.iso'), false, 'another name has them');
  assert.equal(await read(archives, 'd.iso', 'linux'), 'undefined');
  assert.equal(await read(archives, 'same.iso', 'linux'), 'kernel');
  inUse.add(CONTENT);
  assert.equal(await archives.remove('same.iso'), false, 'a machine boots from them');
  assert.deepEqual(await archives.list(), []);
  inUse.clear();
  assert.equal(await archives.name('again.iso', CONTENT), true);
  assert.equal(await archives.remove('again.iso'), true);
  assert.equal(await archives.remove('never.iso'), false);
  assert.deepEqual(await readdir(dir), ['names.json']);
});

test('a name that is added during a removal has its content, or is refused', async (t) => {
  const dir = await folder(t);
  for (let turns = 0; turns < 60; turns += 1) {
    let asked = (): boolean => true;
    const archives = await openBootArchives(dir, () => new Set(asked() ? [CONTENT] : []));
    await keep(archives, 'd.iso', written('kernel', '0 6 linux\n'));
    assert.equal(await archives.remove('d.iso'), false, 'a machine boots from them');
    let naming: Promise<boolean> | undefined;
    asked = () => {
      // At the moment of the decision, and some turns later.
      naming ??= nextTurns(turns % 6).then(() => archives.name('again.iso', CONTENT));
      return false;
    };
    await archives.dropUnnamed();
    const isNamed = await naming;
    assert.equal(archives.contentOf('again.iso'), isNamed ? CONTENT : undefined);
    assert.equal((await archives.list()).length, isNamed ? 1 : 0);
    if (isNamed) assert.equal(await read(archives, 'again.iso', 'linux'), 'kernel');
    await archives.remove('again.iso');
  }
});

test('a list omits an archive whose content is missing', async (t) => {
  const dir = await folder(t);
  const archives = await openBootArchives(dir, nobody);
  await keep(archives, 'd.iso', written('kernel', '0 6 linux\n'));
  const listing = archives.list();
  await archives.remove('d.iso');
  assert.ok((await listing).length <= 1);
  await keep(archives, 'd.iso', written('kernel', '0 6 linux\n'));
  await rm(join(dir, `${CONTENT}.data`));
  assert.deepEqual(await archives.list(), []);
});

test('malformed and unfinished output of an appliance is removed', async (t) => {
  const dir = await folder(t);
  const archives = await openBootArchives(dir, nobody);
  const hostile = [
    written('kernel', '0 7 linux\n'),
    written('kernel', '0 6 ../linux\n'),
    written('kernel', '0 6 linux\nlink a\t../../etc/passwd\n'),
    written('kernel', '0 6 linux\n', { at: 4000 }),
    written('kernel', '0 6 linux\n', { at: 3 }),
    Buffer.from('kernel'),
    Buffer.alloc(4096),
  ];
  for (const bytes of hostile)
    await assert.rejects(keep(archives, 'd.iso', bytes), { code: 'IMAGE_INVALID' });
  const whole = written('kernel', '0 6 linux\n');
  for (const said of [0, whole.length - 1, whole.length + 1, MIB + 1])
    await assert.rejects(keep(archives, 'd.iso', whole, { said }), { code: 'IMAGE_INVALID' });
  assert.deepEqual(await readdir(dir), []);

  await writeFile(join(dir, 'new-1'), 'of a daemon that was killed');
  await openBootArchives(dir, nobody);
  assert.deepEqual(await readdir(dir), []);
});
