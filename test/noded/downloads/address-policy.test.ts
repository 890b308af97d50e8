import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isForbiddenAddress,
  refusalOf,
  safeLookup,
} from '../../../noded/downloads/transfer/address-policy.ts';
import { formatUrl, parseSource } from '../../../noded/downloads/transfer/source-url.ts';

test('link-local addresses are forbidden in each of their spellings, others are not', () => {
  for (const address of [
    '169.254.0.1',
    '169.254.169.254',
    'fe80::1',
    'febf::1',
    'fe80::1%eth0',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    'fd00:ec2::254',
  ]) {
    assert.ok(isForbiddenAddress(address), address);
  }
  for (const address of [
    '127.0.0.1',
    '10.0.0.1',
    '169.253.255.255',
    '::1',
    '2001:db8::1',
    'fec0::1',
  ]) {
    assert.ok(!isForbiddenAddress(address), address);
  }
  for (const url of [
    'http://0xa9fea9fe/',
    'http://2852039166/',
    'http://169.254.43518/',
    'http://[::ffff:a9fe:a9fe]/',
  ]) {
    assert.ok(refusalOf(new URL(url)), url);
  }
});

test('a name that resolves to nothing but link-local addresses is refused', async () => {
  const error = await new Promise((resolve) =>
    safeLookup('169.254.169.254', { all: true }, resolve),
  );
  assert.match(String(error), /link-local/);
});

test('a URL is shown without credentials, fragment and signatures', () => {
  const shown = formatUrl(
    new URL('https://u:p@h/x.qcow2?X-Amz-Signature=abc&X-Amz-Credential=me&part=1#f'),
  );
  assert.equal(
    shown,
    'https://h/x.qcow2?X-Amz-Signature=redacted&X-Amz-Credential=redacted&part=1',
  );
});

test('sources are absolute paths and http, https and ftp URLs', () => {
  assert.deepEqual(parseSource('/a b'), { kind: 'path', path: '/a b' });
  assert.equal(parseSource('HTTP://Host/x')?.kind, 'url');
  for (const text of [
    '',
    'a',
    'a/b',
    'file:///x',
    'http:/x',
    'http:x',
    'http://',
    'data:,x',
    '/a\0b',
    'ssh://h/',
  ]) {
    assert.equal(parseSource(text), undefined, text);
  }
});
