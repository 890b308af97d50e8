import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { buffer } from 'node:stream/consumers';
import { findInArchive, parseArchiveIndex } from '../../noded/netboot/archive-index.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { disposeLab } from './support/end-lab.ts';

/** Archives of boot environments, extracted by the appliance. Refusals need no appliance. */
const TIMEOUT_MS = 600_000;
const KERNEL = Buffer.alloc(3_000_000, 'kernel');
let lab: Lab;
let files: string;

before(async () => {
  lab = await createLab('gnt-archives');
  files = join(lab.paths.root, 'files');
  await mkdir(files);
  await lab.startNode();
});

after(() => disposeLab(lab));

async function tarOf(entries: readonly (readonly [string, Buffer | string])[]): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of entries) {
    if (typeof content === 'string') archive.entry({ name, type: 'symlink', linkname: content });
    else archive.entry({ name }, content);
  }
  archive.finalize();
  return buffer(archive);
}

/** Creates a BootEnv with an archive. */
async function createBootEnv(name: string, archive: Buffer): Promise<string> {
  const path = join(files, `${name}.archive`);
  await writeFile(path, archive);
  const sha256 = createHash('sha256').update(archive).digest('hex');
  const amd64 = { IsoFile: `${name}.archive`, Sha256: sha256, Kernel: 'boot/linux' };
  const document = { Name: name, OS: { Name: 'x', SupportedArchitectures: { amd64 } } };
  await writeFile(join(files, `${name}.json`), JSON.stringify(document));
  const created = await lab.run('gnt-bootenv', ['create', join(files, `${name}.json`)]);
  assert.equal(created.status, 0, created.stderr);
  return path;
}

const upload = (name: string, path: string) =>
  lab.run('gnt-bootenv', ['uploadiso', name, path], { timeoutMs: TIMEOUT_MS });

/** Reads a stored part of an extracted archive. */
async function kept(archive: Buffer, part: 'data' | 'index'): Promise<Buffer> {
  const dir = join(lab.paths.root, 'var/lib/gnt/boot-archives');
  const sha256 = createHash('sha256').update(archive).digest('hex');
  return await readFile(join(dir, `${sha256}.${part}`));
}

/** Returns a file of an extracted archive, located by its index. */
async function fileOf(archive: Buffer, path: string): Promise<Buffer | undefined> {
  const data = await kept(archive, 'data');
  const index = await kept(archive, 'index');
  await parseArchiveIndex(index.toString(), data.length);
  const extent = findInArchive(index, path);
  return extent && data.subarray(extent.offset, extent.offset + extent.sizeBytes);
}

/**
 * Returns an ISO of xorriso. `rock-ridge-links` has Rock Ridge and Joliet, with links to files, to
 * folders, outside and in a circle.
 */
async function unpackIso(name: string): Promise<Buffer> {
  const packed = `../../fixtures/bootenvs/archives/${name}.iso.gz`;
  return gunzipSync(await readFile(join(import.meta.dirname, packed)));
}

test('a compressed tar archive and an ISO are opened, once for a content', async () => {
  const tar = gzipSync(
    await tarOf([
      ['./boot/linux', KERNEL],
      ['./vmlinuz', 'boot/linux'],
      ['./out', '../../etc/passwd'],
    ]),
  );
  const path = await createBootEnv('tarred', tar);
  const first = await upload('tarred', path);
  assert.equal(first.status, 0, first.stderr);
  assert.ok((await fileOf(tar, 'boot/linux'))?.equals(KERNEL));
  assert.ok((await fileOf(tar, 'vmlinuz'))?.equals(KERNEL));
  assert.equal(await fileOf(tar, 'out'), undefined);
  const again = await upload('tarred', path);
  assert.equal(again.status, 0, again.stderr);
  assert.match(again.stderr, /is already open/);

  const iso = await unpackIso('rock-ridge-links');
  const opened = await upload('iso', await createBootEnv('iso', iso));
  assert.equal(opened.status, 0, opened.stderr);
  assert.ok((await kept(iso, 'data')).equals(iso), 'its files are where they are in it');
  const kernel = Buffer.from('kernel'.repeat(20_000));
  for (const name of ['boot/Linux-Kernel_6.1', 'vmlinuz', 'debian/debian/vmlinuz'])
    assert.ok((await fileOf(iso, name))?.equals(kernel), name);
  const texts = {
    ...{ absolute: 'initrd\n', 'dists/stable/Release': 'Codename: bookworm\n', empty: '' },
    'a name, with spaces & ü.txt': 'names\n',
  };
  for (const [name, text] of Object.entries(texts))
    assert.equal((await fileOf(iso, name))?.toString(), text, name);
  for (const name of ['out', 'round1', 'boot', '../etc/passwd'])
    assert.equal(await fileOf(iso, name), undefined, name);
});

test('an ISO of which a file lies in part on another one is copied file by file', async () => {
  const iso = await unpackIso('rock-ridge-links');
  const begin = iso.indexOf('initrd\n');
  assert.equal(begin % 2048, 0);
  assert.ok(growRecords(iso, begin / 2048, 6000) >= 2, 'Rock Ridge and Joliet');
  const opened = await upload('grown', await createBootEnv('grown', iso));
  assert.equal(opened.status, 0, opened.stderr);
  const initrd = await fileOf(iso, 'boot/initrd.gz');
  assert.ok(initrd?.equals(iso.subarray(begin, begin + 6000)));
  const kernel = await fileOf(iso, 'vmlinuz');
  assert.ok(kernel?.equals(Buffer.from('kernel'.repeat(20_000))));
});

/** Changes the size of an extent in all directory records (ECMA-119, 9.1). @returns their number */
function growRecords(iso: Buffer, block: number, sizeBytes: number): number {
  const extent = Buffer.alloc(8);
  extent.writeUInt32LE(block);
  extent.writeUInt32BE(block, 4);
  let records = 0;
  for (let at = iso.indexOf(extent); at !== -1; at = iso.indexOf(extent, at + 1)) {
    iso.writeUInt32LE(sizeBytes, at + 8);
    iso.writeUInt32BE(sizeBytes, at + 12);
    records += 1;
  }
  return records;
}

/** ISOs of xorriso with changed extents of folders and files. */
const HOSTILE = {
  'folders-in-themselves': /AAA\/BBB: Too many levels|its folders are in themselves/,
  'folders-of-one-place': /its folders are in themselves/,
  'files-on-each-other': /its files lie on each other: they have more bytes than it/,
};

test('an ISO whose folders or files lie on each other is refused in the appliance', async () => {
  for (const [name, reason] of Object.entries(HOSTILE)) {
    const iso = await unpackIso(name);
    const refused = await upload(name, await createBootEnv(name, iso));
    assert.equal(refused.status, 1, name);
    assert.match(refused.stderr, /IMAGE_INVALID/);
    assert.match(refused.stderr, reason);
  }
});
