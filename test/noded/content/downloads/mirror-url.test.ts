import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';
import { isBelow, mirrorUrl } from '../../../../noded/content/downloads/mirror-url.ts';

const base = 'http://deb.example.org/debian';

for (const [path, expected] of [
  ['', '/debian/'],
  ['dists/stable/InRelease', '/debian/dists/stable/InRelease'],
  ['pool/libstdc%2b%2b6_1~x.deb', '/debian/pool/libstdc%2B%2B6_1~x.deb'],
  ['./Packages.gz', '/debian/Packages.gz'],
  ['pool/a_1%253a2.deb', '/debian/pool/a_1%253a2.deb'],
  ['a%20b/c:d@e', '/debian/a%20b/c%3Ad%40e'],
] as const) {
  test(`${path || '(the mirror itself)'} is ${expected}`, () => {
    assert.equal(mirrorUrl(base, path)?.href, `http://deb.example.org${expected}`);
    assert.equal(mirrorUrl(`${base}/`, path)?.href, `http://deb.example.org${expected}`);
  });
}

for (const path of [
  '..',
  'a/../../secret',
  '%2e%2e/secret',
  '.%2E/secret',
  '%252e%252e/secret',
  '%25252e/secret',
  'a//b',
  '/etc/passwd',
  '/evil.example.org/x',
  'a/',
  'a\\..\\b',
  '..%5csecret',
  'a%2f..%2fb',
  'a%252f..%252fb',
  'a%00b',
  'a%0d%0aX: y',
  'a%7f',
  'a%',
  'a%ff',
  'a?x=..',
  'a#b',
  'x'.repeat(2049),
]) {
  test(`a path is refused: ${path.slice(0, 40)}`, () => {
    assert.equal(mirrorUrl(base, path), null);
  });
}

test('a name that resembles another host is a file of the mirror', () => {
  for (const path of ['@evil.example.org', 'http:', 'user:pass@evil', 'deb.example.org']) {
    assert.equal(mirrorUrl(base, path)?.origin, 'http://deb.example.org');
  }
});

test('a redirection is below the mirror only within the same folder and origin', () => {
  const judge = (location: string): boolean => isBelow(new URL(location, `${base}/a/b`), base);
  for (const location of ['c', '/debian/x', '../x', 'http://deb.example.org:80/debian/']) {
    assert.ok(judge(location), location);
  }
  for (const location of [
    ...['/', '/debian', '/debian-security/x', '../../x', '/debian/..%2fx', '/debian/%2e%2e/x'],
    ...['https://deb.example.org/debian/x', 'http://deb.example.org:81/debian/x'],
    ...['//evil.example.org/debian/x', 'http://u:p@deb.example.org/debian/x', 'file:///debian/x'],
    ...['http://deb.example.org@evil.example.org/debian/', '/debian/..%5cx'],
  ]) {
    assert.ok(!judge(location), location);
  }
});

test('a mirror is an http or https URL without a login, a query and a fragment', () => {
  const isTaken = (url: string | null, name = 'debian'): boolean =>
    opcode.safeParse({ opcode: 'CLUSTER_SET_PARAMS', packageMirrors: { [name]: url } }).success;
  for (const url of [base, `${base}/`, 'https://[2001:db8::1]:8443/x', null])
    assert.ok(isTaken(url));
  for (const url of [
    ...['', 'deb.example.org', 'http:deb.example.org', 'ftp://deb.example.org/', 'file:///srv'],
    ...[
      'http://joe:hunter22@deb.example.org/',
      `${base}?a`,
      `${base}#a`,
      'http:///x',
      'http://a b/',
    ],
    ...['http://deb.example.org\\@evil/', `http://x/${'x'.repeat(1024)}`, `${base}\n`],
  ]) {
    assert.ok(!isTaken(url), url);
  }
  for (const name of ['', 'Debian', '-a', '../x', 'a/b']) assert.ok(!isTaken(base, name), name);
});
