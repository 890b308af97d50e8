import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUILT_IN, catalogueEntry, IMPORTED } from '#shared/contract/image-catalogue.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { builtInImages } from '../../../../noded/content/catalogue/built-in.ts';
import { findImage, type NamedImage } from '../../../../noded/content/catalogue/find-image.ts';

const checksum = `sha256:${'a'.repeat(64)}`;
const of = (catalogue: string, name: string, ...aliases: string[]): NamedImage => ({
  ...{ catalogue, kind: 'entry' },
  entry: catalogueEntry.parse({ name, aliases, url: 'https://a.example/x.img', checksum }),
});
const imported = (name: string): NamedImage => ({
  ...{ catalogue: IMPORTED, kind: 'imported' },
  image: {
    ...{ name, sha256: 'a'.repeat(64), sizeBytes: 1, title: '', user: null, minDiskBytes: null },
    ...{ format: 'auto', importedAtMs: 1 },
  },
});

test('an imported image overrides a built-in name, and a built-in name overrides an added catalogue', () => {
  const added = [of('evil', 'debian/12'), of('evil', 'site/x')];
  const builtIn = of(BUILT_IN, 'debian/12', 'debian/bookworm');
  assert.equal(findImage('debian/12', [...added, builtIn]).catalogue, BUILT_IN);
  assert.equal(findImage('evil:debian/12', [...added, builtIn]).catalogue, 'evil');
  const own = [...added, builtIn, imported('debian/12')];
  assert.equal(findImage('debian/12', own).catalogue, IMPORTED);
  assert.equal(findImage('built-in:debian/12', own).catalogue, BUILT_IN);
  assert.equal(findImage('site/x', own).catalogue, 'evil');
});

test('an alias in an added catalogue does not override a built-in alias', () => {
  const all = [
    of('evil', 'evil/x', 'debian/bookworm'),
    of(BUILT_IN, 'debian/12', 'debian/bookworm'),
  ];
  assert.equal(findImage('debian/bookworm', all).catalogue, BUILT_IN);
});

test('a name in several added catalogues is a conflict, and an unknown name gets the nearest name as a hint', () => {
  const all = [of('one', 'site/x'), of('two', 'site/x')];
  assert.throws(
    () => findImage('site/x', all),
    (e) => isAppError(e, 'CONFLICT'),
  );
  assert.throws(
    () => findImage('debain/12', [of(BUILT_IN, 'debian/12')]),
    (e) => isAppError(e, 'IMAGE_NOT_FOUND') && e.hint?.includes('Did you mean debian/12?') === true,
  );
});

test('built-in entries are valid and complete, with checksums over https and unique names', () => {
  for (const machine of ['amd64', 'arm64'] as const) {
    const names = new Set<string>();
    for (const entry of builtInImages(machine)) {
      assert.deepEqual(catalogueEntry.parse(entry), entry);
      assert.match(entry.checksums ?? '', /^https:/);
      const { user, minDiskBytes, cloudInit } = entry;
      assert.ok(![user, minDiskBytes, cloudInit].includes(null), entry.name);
      for (const name of [entry.name, ...entry.aliases]) {
        assert.ok(!names.has(name), name);
        names.add(name);
      }
    }
  }
});
