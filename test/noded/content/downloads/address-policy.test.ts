import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { depthOf } from '../../../../noded/content/downloads/transfer/address-policy.ts';
import { SsrfGuard, refusalOf } from '../../../../noded/content/downloads/transfer/ssrf-guard.ts';
import {
  formatUrl,
  loginOf,
  parseSource,
} from '../../../../noded/content/downloads/transfer/source-url.ts';

const PUBLIC = new URL('http://example.com/');

test('an address is classified in each of its spellings', () => {
  const expected = {
    never: [
      ...['169.254.0.1', '169.254.169.254', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
      ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '64:ff9b::a9fe:a9fe', 'fd00:ec2::254'],
      '::ffff:0:169.254.169.254',
      ...['100.100.100.200', '168.63.129.16'],
    ],
    host: [
      ...['127.0.0.1', '127.255.0.9', '0.0.0.0', '::1', '::', '::127.0.0.1', '::ffff:127.0.0.1'],
      ...['::ffff:7f00:1', '64:ff9b::7f00:1', '::ffff:0:127.0.0.1', '::ffff:0:0:0'],
      ...Object.values(networkInterfaces()).flatMap((all) =>
        (all ?? []).map(({ address }) => address).filter((found) => !found.startsWith('fe80')),
      ),
    ],
    private: ['10.0.0.1', '172.31.0.1', '192.168.1.1', '100.64.0.1', '::ffff:a00:1', 'fd12::1'],
    public: [
      '8.8.8.8',
      '169.253.255.255',
      '172.32.0.1',
      '2001:db8::1',
      '64:ff9b::808:808',
      '::ffff:0:8.8.8.8',
    ],
  };
  for (const [depth, addresses] of Object.entries(expected)) {
    for (const address of addresses) assert.equal(depthOf(address) ?? 'never', depth, address);
  }
  for (const url of [
    'http://0xa9fea9fe/',
    'http://2852039166/',
    'http://169.254.43518/',
    'http://0251.0376.0251.0376./',
    'http://[::ffff:a9fe:a9fe]/',
  ]) {
    assert.ok(refusalOf(new URL(url)), url);
  }
});

test('after an answer from the internet, every spelling of an inner address is refused', () => {
  const guard = new SsrfGuard(PUBLIC, []);
  guard.answered('192.0.43.8');
  for (const host of [
    ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0', '127.0.0.1.'],
    ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:10.0.0.1]', '10.0.0.1', '192.168.1'],
    ...['%31%32%37.0.0.1', '１２７.0.0.1', '169.254.169.254'],
  ]) {
    assert.throws(() => guard.checkLiteral(new URL(`http://${host}/`)), /address/, host);
  }
  guard.checkLiteral(new URL('http://8.8.8.8/'));
});

test('a server in a private network may redirect within private networks, and not to this host', () => {
  const guard = new SsrfGuard(PUBLIC, []);
  guard.answered('10.0.0.7');
  guard.checkLiteral(new URL('http://192.168.0.1/'));
  assert.throws(() => guard.checkLiteral(new URL('http://127.0.0.1/')), /address of this host/);
});

test('a name that resolves to nothing but link-local addresses is refused', async () => {
  const error = await new Promise((resolve) =>
    new SsrfGuard(PUBLIC, []).lookup('169.254.169.254', { all: true }, resolve),
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

test('a login that is not percent-encoded is refused without showing it', () => {
  assert.throws(() => loginOf(new URL('http://joe:hunter22%@h/x.raw')), {
    code: 'DOWNLOAD_FAILED',
    message: 'cannot download http://h/x.raw: the login in the URL cannot be parsed',
  });
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
