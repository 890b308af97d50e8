import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { reveal } from '#shared/secret/secret.ts';
import { findLogin, readNetrc } from '../../../../noded/content/downloads/transfer/netrc.ts';

const netrc = `
# machine commented.example login no password no
machine one.example login joe password first
machine two.example
	login ann
	account ignored
	password second
macdef init
  machine macro.example login evil password evil

machine one.example login later password later
default login anonymous password guest
`;
const loginOf = (host: string): string[] => {
  const login = findLogin(netrc, new URL(`http://${host}/`));
  return login ? [login.user, reveal(login.password)] : [];
};

test('finds the first login of a host, else the default', () => {
  assert.deepEqual(loginOf('one.example'), ['joe', 'first']);
  assert.deepEqual(loginOf('two.example'), ['ann', 'second']);
  for (const host of ['commented.example', 'macro.example', 'other.example']) {
    assert.deepEqual(loginOf(host), ['anonymous', 'guest'], host);
  }
  assert.equal(findLogin('machine a login b password c', new URL('http://x')), undefined);
  assert.equal(findLogin('', new URL('http://x')), undefined);
});

test('a netrc machine with a scheme or port matches only that scheme or port', () => {
  const narrow = (machine: string, url: string): boolean =>
    findLogin(`machine ${machine} login joe password x`, new URL(url)) !== undefined;
  assert.ok(narrow('https://a.example', 'https://a.example/x'));
  assert.ok(narrow('a.example:8080', 'http://a.example:8080/x'));
  assert.ok(narrow('a.example', 'http://a.example:8080/x'));
  assert.ok(!narrow('https://a.example', 'http://a.example/x'));
  assert.ok(!narrow('https://a.example', 'https://a.example:444/x'));
  assert.ok(!narrow('a.example:8080', 'http://a.example/x'));
});

test('a password is not shown by printing the login', () => {
  assert.ok(!inspect(findLogin(netrc, new URL('https://one.example'))).includes('first'));
});

test('a missing netrc file has no logins, and an unreadable netrc file is named', () => {
  assert.equal(readNetrc('/no/such/netrc'), '');
  assert.throws(() => readNetrc('/etc'), { code: 'FILE_UNREADABLE', message: /\/etc/ });
});
