import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { parseRequestTarget } from '../../../metad/http/request-target.ts';

test('a path loses one leading and one trailing slash and its query', () => {
  assert.equal(parseRequestTarget('/')?.path, '');
  assert.equal(parseRequestTarget('/latest/')?.path, 'latest');
  assert.equal(parseRequestTarget('/latest//')?.path, 'latest/');
  assert.equal(parseRequestTarget('//latest')?.path, '/latest');
  const target = parseRequestTarget('/read?wait=5&x');
  assert.equal(target?.path, 'read');
  assert.equal(target?.query?.get('wait'), '5');
});

test('percent-encoding is decoded once', () => {
  assert.equal(parseRequestTarget('/latest/meta%2ddata')?.path, 'latest/meta-data');
  assert.equal(parseRequestTarget('/%2561')?.path, '%61');
});

test('malformed encodings, control characters and other forms are refused', () => {
  for (const text of [
    '/%',
    '/%zz',
    '/%E0%A4%A',
    '/%00',
    '/a%0d%0ab',
    '/%7f',
    '*',
    'x',
    'host:80',
    '/#a',
    'ftp://x/',
  ]) {
    assert.equal(parseRequestTarget(text), null, text);
  }
});

test('dots and encoded slashes lead nowhere', () => {
  for (const text of [
    '/latest/../ganeti',
    '/latest/%2e%2e/ganeti',
    '/./latest',
    '/latest%2fmeta-data',
    '/nocloud/..%2fganeti',
    '//ganeti',
  ]) {
    const target = parseRequestTarget(text);
    const address = target && resolveAddress(target.path);
    assert.ok(
      !address || (address.kind === 'entry' && /\.\.|\ufffd|\/\//.test(address.path)),
      `${text} → ${JSON.stringify(address)}`,
    );
  }
});

test('an absolute form names its host', () => {
  const target = parseRequestTarget('http://169.254.169.254/latest?x=1');
  assert.equal(target?.authority, '169.254.169.254');
  assert.equal(target?.path, 'latest');
  assert.equal(parseRequestTarget('http://evil')?.authority, 'evil');
});

test('random targets do not make the parser throw', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webPath(), fc.string({ unit: 'binary' })), (text) => {
      parseRequestTarget(text);
      parseRequestTarget(`/${text}`);
    }),
    { numRuns: 2000 },
  );
});
