import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ancestorsOf, entriesOf, joinPath } from '../../../../web/pages/instance/metadata-paths.ts';

test('a path leads back to each folder above it', () => {
  assert.deepEqual(ancestorsOf('/latest/meta-data/mac'), [
    { to: '/', word: '/' },
    { to: '/latest/', word: 'latest/' },
    { to: '/latest/meta-data/', word: 'meta-data/' },
    { to: '/latest/meta-data/mac', word: 'mac' },
  ]);
});

test('an entry of a listing is below its folder', () => {
  assert.equal(joinPath('/latest/', 'meta-data/'), '/latest/meta-data/');
  assert.equal(joinPath('/latest/meta-data', 'mac'), '/latest/meta-data/mac');
  assert.equal(
    joinPath('/latest/meta-data/public-keys/', '0=my-key'),
    '/latest/meta-data/public-keys/0/',
  );
  assert.equal(joinPath('/openstack/', 'latest'), '/openstack/latest/');
  assert.equal(joinPath('/', '2009-04-04'), '/2009-04-04/');
});

test('only the text of a folder is a listing', () => {
  assert.deepEqual(entriesOf('/latest/', 'dynamic/\nmeta-data/\nuser-data\n'), [
    'dynamic/',
    'meta-data/',
    'user-data',
  ]);
  assert.equal(entriesOf('/latest/user-data', 'a\nb'), null);
  assert.equal(entriesOf('/latest/', '<script>alert(1)</script>'), null);
});
