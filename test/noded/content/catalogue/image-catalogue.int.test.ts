import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { createImageCatalogue } from '../../../../noded/content/catalogue/image-catalogue.ts';
import { fails } from '../images/image-cache-lab.ts';
import { type Stretches, threadStretches } from '../../../lab/thread-time.ts';
import { CHECKSUM, OTHER, newCatalogue, type Web } from './image-catalogue-lab.ts';

const { signal } = new AbortController();

const SITE = 'https://site.example/images.yaml';
const names = async (catalogue: ReturnType<typeof createImageCatalogue>, of: string) =>
  (await catalogue.list()).flatMap(({ catalogue: from, name }) => (from === of ? [name] : []));

test("an operator's document resolves relative URLs, and is kept across a restart", async (t) => {
  const web: Web = {
    [SITE]: `images:
  - {name: site/base, aliases: [base], url: img/base.qcow2, checksums: SUMS, user: admin, min_disk: 4G, cloud_init: 23.4}
  - {name: site/fixed, url: "http://plain.example/x.raw", checksum: "${CHECKSUM}"}
`,
    'https://site.example/SUMS': `${OTHER}  base.qcow2\n`,
  };
  const { catalogue, open } = await newCatalogue(t, web);
  await catalogue.add('site', SITE, signal);
  const base = await open().resolve('base', signal);
  assert.deepEqual(base, {
    ...{ name: 'site/base', catalogue: 'site', source: 'https://site.example/img/base.qcow2' },
    ...{ checksum: `sha256:${OTHER}`, user: 'admin', minDiskBytes: 4 * 1024 ** 3 },
    ...{ format: 'auto', cloudInit: '23.4', verified: 'https', isOffline: false },
  });
  assert.equal((await open().resolve('site/fixed', signal)).checksum, CHECKSUM);
  await assert.rejects(catalogue.add('site', SITE, signal), fails('CONFLICT', /already/));
  web[SITE] = `images: [{name: site/new, url: n.raw, checksum: "${CHECKSUM}"}]`;
  await catalogue.update([], signal);
  assert.deepEqual(await names(catalogue, 'site'), ['site/new']);
  delete web[SITE];
  await assert.rejects(catalogue.update(['site'], signal), fails('DOWNLOAD_FAILED', /no https/));
  assert.deepEqual(await names(open(), 'site'), ['site/new']);
  await catalogue.remove('site');
  await assert.rejects(open().resolve('site/new', signal), fails('IMAGE_NOT_FOUND', /site\/new/));
});

test('an update reports unreadable catalogues and updates the others', async (t) => {
  const image = (name: string) => `images: [{name: ${name}, url: n.raw, checksum: "${CHECKSUM}"}]`;
  const [bad, worse] = ['https://bad.example/i.yaml', 'https://worse.example/i.yaml'];
  const web: Web = { [bad]: image('a/x'), [SITE]: image('b/x'), [worse]: image('c/x') };
  const { catalogue } = await newCatalogue(t, web);
  for (const [name, source] of [
    ['bad', bad],
    ['good', SITE],
    ['worse', worse],
  ] as const)
    await catalogue.add(name, source, signal);
  web[SITE] = image('b/new');
  delete web[bad];
  await assert.rejects(catalogue.update([], signal), fails('DOWNLOAD_FAILED', /no .*bad\.example/));
  assert.deepEqual(await names(catalogue, 'good'), ['b/new']);
  assert.deepEqual(await names(catalogue, 'bad'), ['a/x']);
  web[worse] = 'no';
  const both = catalogue.update([], signal);
  await assert.rejects(both, fails('DOWNLOAD_FAILED', /2 .*bad: no .*worse: .*cannot be used/));
  // Content of one source must not be stored under a name that belongs to another source meanwhile.
  web[SITE] = async () => {
    web[SITE] = image('b/late');
    await catalogue.remove('good');
    await catalogue.add('good', worse, signal);
    return image('b/late');
  };
  web[worse] = image('c/new');
  await catalogue.update(['good'], signal);
  assert.deepEqual(await names(catalogue, 'good'), ['c/new']);
});

test('a catalogue beyond the size limit is refused by its name', async (t) => {
  const url = (at: number) => `https://site.example/${at}/${'x'.repeat(1900)}`;
  const entry = (at: number) => ({ name: `x/${at}`, url: url(at), checksum: CHECKSUM });
  const many = JSON.stringify({ images: Array.from({ length: 600 }, (_, at) => entry(at)) });
  const { catalogue, open, dir } = await newCatalogue(t, { [SITE]: many });
  const adding = catalogue.add('large', SITE, signal);
  await assert.rejects(adding, fails('CATALOGUE_INVALID', /catalogue large takes \d+ bytes/));
  const file = join(dir, 'catalogues.json');
  await writeFile(file, '');
  await truncate(file, 65 * 1024 ** 2);
  await assert.rejects(open().list(), fails('RECORD_UNREADABLE', /catalogues\.json/));
});

test('an imported file that is in use or whose record is lost is not removed', async (t) => {
  const used = new Set<string>();
  const { catalogue, open, dir } = await newCatalogue(t, {}, new Set(), used);
  const imported = join(dir, 'imported');
  const file = join(dir, 'disk.img');
  await writeFile(file, 'one');
  await catalogue.import({ name: 'one', path: file }, signal);
  const { source } = await catalogue.resolve('one', signal);
  used.add(source);
  await writeFile(file, 'two');
  await catalogue.import({ name: 'one', path: file }, signal);
  assert.equal(await readFile(source, 'utf8'), 'one');
  used.clear();
  // Left-overs of a killed daemon are removed by the next one.
  await writeFile(join(imported, 'half-of'), 'a copy');
  const [name = ''] = (await open().list()).map((each) => each.source);
  assert.deepEqual(await readdir(imported), [basename(name)]);
  // Files stay when their record is lost.
  await rm(join(dir, 'catalogues.json'));
  await writeFile(file, 'three');
  await open().import({ name: 'three', path: file }, signal);
  await open().list();
  assert.equal((await readdir(imported)).length, 2);
  assert.equal(await readFile(name, 'utf8'), 'two');
});

const stream = (path: unknown, more: object = {}) => ({
  format: 'products:1.0',
  products: {
    'd:12:amd64': {
      ...{ arch: 'amd64', os: 'Debian', release_title: '12', aliases: 'debian/12/cloud,debian/12' },
      versions: {
        20260102: { items: { meta: { ftype: 'lxd.tar.xz', sha256: OTHER, path: 'm' } } },
        20260101: {
          items: { disk: { ftype: 'disk-kvm.img', path, sha256: OTHER, ...more } },
        },
      },
    },
    'd:12:arm64': { arch: 'arm64', os: 'Debian', aliases: 'debian/12', versions: {} },
  },
});
const INDEX = 'https://s.example/mirror/streams/v1/index.json';

test('simplestreams are read from their root, and list the newest disk images of the architecture', async (t) => {
  const products = 'https://s.example/mirror/streams/v1/images.json';
  const web: Web = {
    [INDEX]: JSON.stringify({
      format: 'index:1.0',
      index: {
        images: { datatype: 'image-downloads', path: 'streams/v1/images.json' },
        other: { datatype: 'content-download', path: 'streams/v1/missing.json' },
      },
    }),
    [products]: JSON.stringify(stream('images/d/disk.qcow2')),
  };
  const { catalogue } = await newCatalogue(t, web);
  await catalogue.add('incus', 'https://s.example/mirror', signal);
  assert.deepEqual(await names(catalogue, 'incus'), ['debian/12/cloud']);
  const { source, checksum } = await catalogue.resolve('incus:debian/12', signal);
  assert.equal(source, 'https://s.example/mirror/images/d/disk.qcow2');
  assert.equal(checksum, `sha256:${OTHER}`);
});

test('a stream with paths outside of itself is refused', async (t) => {
  const products = 'https://s.example/mirror/streams/v1/images.json';
  for (const path of [
    '../../etc',
    '//other.example/x',
    'https://other.example/x',
    '/x',
    'file:///x',
    7,
  ]) {
    const web: Web = { [products]: JSON.stringify(stream(path)) };
    const { catalogue } = await newCatalogue(t, web);
    const adding = catalogue.add('evil', products, signal);
    await assert.rejects(
      adding,
      fails('CATALOGUE_INVALID', /no usable image .*; refused entries: 1$/),
    );
  }
  for (const path of ['../../../x.json', 'https://other.example/x.json', 'file:///etc/passwd']) {
    const index = { format: 'index:1.0', index: { a: { path } } };
    const { catalogue } = await newCatalogue(t, { [INDEX]: JSON.stringify(index) });
    const adding = catalogue.add('evil', 'https://s.example/mirror/', signal);
    await assert.rejects(adding, fails('CATALOGUE_INVALID', /points outside of itself/));
  }
});

test('invalid entries are skipped and counted', async (t) => {
  const good = { name: 'good', url: 'g.raw', checksum: CHECKSUM };
  const bad = [
    { ...good, name: '../etc' },
    { ...good, name: 'a/../b' },
    { ...good, name: 'x\u001b[2J' },
    { ...good, name: '-o' },
    { ...good, name: 'site:base' },
    { ...good, title: 'red\u001b[31m' },
    { ...good, title: 'turned\u202earound' },
    { ...good, checksum: undefined },
    { ...good, checksum: 'md5:00' },
    { ...good, checksums: 'SUMS' },
    { ...good, url: 'file:///etc/shadow' },
    { ...good, url: 'https://site.example/%zz' },
    { ...good, url: 'http://127.0.0.1:6379/x' },
    { ...good, url: 'http://localhost/x' },
    { ...good, url: 'http://192.168.0.1/x' },
    { ...good, url: 'http://[::ffff:10.0.0.1]/x' },
    { ...good, url: 'http://169.254.169.254/x' },
    { ...good, checksum: undefined, checksums: 'https://[::1]/SUMS' },
    { ...good, min_disk: '1025G' },
    { ...good, url: 'https://user:password@site.example/x' },
    { ...good, checksum: undefined, checksums: 'http://site.example/SUMS' },
    { ...good, keyring: '/etc/shadow' },
    { ...good, user: '-oProxyCommand=x' },
    { ...good, min_disk: 'much' },
    { ...good, more: 1 },
    { __proto__: good },
    7,
    null,
  ];
  const { catalogue } = await newCatalogue(t, {
    [SITE]: JSON.stringify({ images: [...bad, good] }),
  });
  await catalogue.add('site', SITE, signal);
  assert.deepEqual(await names(catalogue, 'site'), ['good']);
  assert.equal((await catalogue.catalogues()).at(-1)?.refused, bad.length);
});

test('an invalid document or catalogue URL is refused, and no catalogue is added', async (t) => {
  for (const document of [
    '',
    'no',
    '[]',
    '{"images": {}}',
    '{"format":"index:1.0","index":7',
    `images: ${'['.repeat(2000)}`,
    `a: &a [x]\nimages: [${Array.from({ length: 300 }, () => '*a').join(',')}]`,
    JSON.stringify({ images: Array.from({ length: 5001 }, () => ({})) }),
    Buffer.alloc(17 * 1024 ** 2, ' '),
  ]) {
    const { catalogue } = await newCatalogue(t, { [SITE]: document });
    await assert.rejects(catalogue.add('evil', SITE, signal), fails('CATALOGUE_INVALID', /./));
    assert.equal((await catalogue.catalogues()).length, 1);
  }
  const { catalogue } = await newCatalogue(t, {});
  for (const source of ['http://site.example/x.yaml', 'ftp://a/b', 'x.yaml', 'https://u:p@a/b'])
    await assert.rejects(catalogue.add('evil', source, signal), fails('IMAGE_SOURCE', /catalogue/));
});

test('parsing a hostile catalogue blocks the daemon for less than 1.7 times the time to read its bytes', async (t) => {
  const image = (index: number) => ({
    ...{ name: `i${index}`, url: `${index}.raw`, checksum: CHECKSUM, title: 'ä'.repeat(200) },
    aliases: Array.from({ length: 32 }, (_, alias) => `${'a'.repeat(60)}/${index}/${alias}`),
  });
  const many = Array.from({ length: 5000 }, (_, index) => image(index));
  const large = Buffer.from(JSON.stringify({ images: many }));
  const add = async (document: Buffer): Promise<void> => {
    const { catalogue } = await newCatalogue(t, { [SITE]: document });
    await assert.rejects(catalogue.add('evil', SITE, signal), fails('CATALOGUE_INVALID', /./));
  };
  // A catalogue without entries.
  const addNothing = (): Promise<void> => add(Buffer.alloc(large.length));
  let movedMs = Infinity;
  for (let run = 0; run < 3; run += 1)
    movedMs = Math.min(movedMs, (await threadStretches(addNothing)).longestMs);
  const isFine = ({ longestMs }: Stretches): boolean => longestMs < 1.7 * movedMs;
  const stretches = await threadStretches(() => add(large), isFine);
  assert.ok(isFine(stretches), JSON.stringify({ ...stretches, movedMs }));
});

test('an import copies the file, checks its checksum, and is removed with its name', async (t) => {
  const { catalogue, open, dir } = await newCatalogue(t, {});
  const file = join(dir, 'disk.img');
  await writeFile(file, 'a disk');
  const sha256 = createHash('sha256').update('a disk').digest('hex');
  const request = { name: 'debian/12', path: file, user: 'me', minDiskBytes: 4096 };
  const wrong = { ...request, checksum: CHECKSUM };
  await assert.rejects(catalogue.import(wrong, signal), fails('IMAGE_CHECKSUM_MISMATCH', /disk/));
  assert.deepEqual(await readdir(join(dir, 'imported')), []);
  await Promise.all([catalogue.import(request, signal), catalogue.import(request, signal)]);
  await writeFile(file, 'changed');
  const found = await open().resolve('debian/12', signal);
  assert.deepEqual([found.catalogue, found.checksum], ['imported', `sha256:${sha256}`]);
  assert.equal(await readFile(found.source, 'utf8'), 'a disk');
  const other = catalogue.resolve('built-in:debian/12', signal);
  await assert.rejects(other, fails('DOWNLOAD_FAILED', /cloud.debian.org/));
  await writeFile(join(dir, 'imported/half'), 'of a daemon that was killed');
  await catalogue.remove('debian/12');
  assert.deepEqual(await readdir(join(dir, 'imported')), []);
  await symlink('/dev/zero', join(dir, 'zero'));
  const device = { ...request, path: join(dir, 'zero') };
  await assert.rejects(catalogue.import(device, signal), fails('IMAGE_UNREADABLE', /regular/));
});
