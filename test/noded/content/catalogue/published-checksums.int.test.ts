import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { CatalogueEntry } from '#shared/contract/image-catalogue.ts';
import { keyOfKnown } from '../../../../noded/content/catalogue/known-checksums.ts';
import { fails } from '../images/image-cache-lab.ts';
import { OTHER, MISSING, newCatalogue, type Web } from './image-catalogue-lab.ts';

const SITE = 'https://site.example/images.yaml';
const { signal } = new AbortController();
const signatures = join(import.meta.dirname, '../../../../fixtures/signatures');

test('the last published checksum is used without a network while the image is cached', async (t) => {
  const list = 'https://site.example/SUMS';
  const web: Web = {
    [SITE]: 'images: [{name: site/base, url: base.qcow2, checksums: SUMS}]',
    [list]: `${OTHER}  base.qcow2\n`,
  };
  const cached = new Set<string>();
  const { catalogue } = await newCatalogue(t, web, cached);
  await catalogue.add('site', SITE, signal);
  await catalogue.resolve('site/base', signal);
  delete web[list];
  await assert.rejects(catalogue.resolve('site/base', signal), fails('DOWNLOAD_FAILED', /SUMS/));
  cached.add(`sha256:${OTHER}`);
  const offline = await catalogue.resolve('site/base', signal);
  assert.deepEqual([offline.isOffline, offline.checksum], [true, `sha256:${OTHER}`]);
  // A wrong answer is not a missing network.
  web[list] = MISSING;
  await assert.rejects(catalogue.resolve('site/base', signal), fails('DOWNLOAD_FAILED', /404/));
  web[list] = `${OTHER}  another.qcow2\n`;
  await assert.rejects(
    catalogue.resolve('site/base', signal),
    fails('CATALOGUE_INVALID', /no checksum of 'base.qcow2'/),
  );
});

test('a checksum list whose signature is of another content is refused', async (t) => {
  const list = 'https://site.example/content';
  const signature = 'https://site.example/content.asc';
  const web: Web = {
    [list]: await readFile(join(signatures, 'content')),
    [signature]: await readFile(join(signatures, 'release.asc')),
  };
  const { catalogue, dir } = await newCatalogue(t, web);
  const file = join(dir, 'images.json');
  const key = join(signatures, 'release.key.asc');
  const entry = { name: 'x', url: 'https://site.example/x', checksums: list, signature };
  web[file] = JSON.stringify({ images: [{ ...entry, keyring: key }] });
  await catalogue.add('site', file, signal);
  // Signed, without a checksum.
  await assert.rejects(catalogue.resolve('x', signal), fails('CATALOGUE_INVALID', /no checksum/));
  web[list] = `${OTHER}  x\n`;
  await assert.rejects(catalogue.resolve('x', signal), fails('SIGNATURE_INVALID', /content.asc/));
});

test('a checksum in an added catalogue does not apply to a built-in image with the same file', async (t) => {
  const { source: theirs } = await built(t, 'ubuntu/24.04');
  const web: Web = {
    [SITE]: JSON.stringify({ images: [{ name: 'tools/two', url: theirs, checksums: 'SUMS' }] }),
    'https://site.example/SUMS': `${OTHER}  ${theirs.split('/').at(-1) ?? ''}\n`,
  };
  const { catalogue } = await newCatalogue(t, web, new Set([`sha256:${OTHER}`]));
  await catalogue.add('evil', SITE, signal);
  assert.equal((await catalogue.resolve('tools/two', signal)).source, theirs);
  const builtIn = catalogue.resolve('ubuntu/24.04', signal);
  await assert.rejects(builtIn, fails('DOWNLOAD_FAILED', /SHA256SUMS/));
  const shown = (await catalogue.list()).find(({ name }) => name === 'ubuntu/24.04');
  assert.deepEqual([shown?.checksum, shown?.isCached], [null, false]);
});

async function built(t: TestContext, name: string) {
  const { catalogue } = await newCatalogue(t, {});
  const found = (await catalogue.list()).find((each) => each.name === name);
  assert.ok(found !== undefined);
  return found;
}

test('a stored checksum is used offline only when it was signed, for an entry with a signature', async (t) => {
  const { open, dir } = await newCatalogue(t, {}, new Set([`sha256:${OTHER}`]));
  const key = join(signatures, 'release.key.asc');
  const list = 'https://site.example/content';
  const entry = { name: 'x', url: 'https://site.example/x', checksums: list };
  const file = join(dir, 'images.json');
  const signed = { ...entry, signature: `${list}.asc`, keyring: key };
  const images = await newCatalogue(t, { [file]: JSON.stringify({ images: [signed] }) });
  await images.catalogue.add('site', file, signal);
  const stored = JSON.parse(await readFile(join(images.dir, 'catalogues.json'), 'utf8')) as {
    known: object;
    catalogues: { entries: CatalogueEntry[] }[];
  };
  const [wanted] = stored.catalogues[0]?.entries ?? [];
  assert.ok(wanted !== undefined);
  for (const isSigned of [false, true]) {
    const known = { [keyOfKnown('site', wanted)]: { checksum: `sha256:${OTHER}`, isSigned } };
    await writeFile(join(dir, 'catalogues.json'), JSON.stringify({ ...stored, known }));
    const resolving = open().resolve('x', signal);
    if (isSigned) assert.equal((await resolving).isOffline, true);
    else await assert.rejects(resolving, fails('DOWNLOAD_FAILED', /content/));
  }
});

test('an entry whose keyring is missing on the node is refused', async (t) => {
  const file = '/not-there/lacking.json';
  const signature = 'https://site.example/SUMS.gpg';
  const entry = { name: 'x', url: 'https://site.example/x', checksums: SITE, signature };
  const web: Web = {
    [file]: JSON.stringify({ images: [{ ...entry, keyring: '/not-there/none.gpg' }] }),
    [SITE]: `${OTHER}  x\n`,
  };
  const lacking = (await newCatalogue(t, web, new Set([`sha256:${OTHER}`]))).catalogue;
  await lacking.add('site', file, signal);
  await assert.rejects(lacking.resolve('x', signal), fails('SIGNATURE_INVALID', /none\.gpg/));
  // Either field needs the other.
  const unsigned = { ...entry, signature: null, keyring: '/k.gpg' };
  web[file] = JSON.stringify({ images: [entry, unsigned] });
  await assert.rejects(
    lacking.update([], signal),
    fails('CATALOGUE_INVALID', /refused entries: 2$/),
  );
});
