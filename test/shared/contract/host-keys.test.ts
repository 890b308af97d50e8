import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostKey, loginUser } from '#shared/contract/host-keys.ts';

const BLOB = 'AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

test('a host key is a type and the base64 of a key of that type', () => {
  assert.ok(hostKey.safeParse(`ssh-ed25519 ${BLOB}`).success);
});

test('nothing else gets into a file that ssh reads', () => {
  for (const text of [
    '',
    'ssh-ed25519',
    'ssh-ed25519 ',
    'ssh-ed25519 AAAA',
    'N/A',
    `ssh-ed25519 ${BLOB} root@guest`,
    `ssh-ed25519 ${BLOB}\n* ssh-ed25519 ${BLOB}`,
    `ssh-ed25519  ${BLOB}`,
    `@cert-authority ssh-ed25519 ${BLOB}`,
    `ssh-dss ${BLOB}`,
    `ssh-rsa ${BLOB}`,
    `ssh-ed25519 ${BLOB}!`,
    `ssh-ed25519 ${BLOB}${'A'.repeat(4096)}`,
  ])
    assert.ok(!hostKey.safeParse(text).success, JSON.stringify(text));
});

test('a login user is no option of ssh, and no command', () => {
  for (const text of ['debian', 'root', '_apt', 'a-b_c9'])
    assert.ok(loginUser.safeParse(text).success, text);
  for (const text of ['', '-oProxyCommand=x', 'a b', 'a;b', 'a\u001b[2J', 'x'.repeat(33), 'A@b'])
    assert.ok(!loginUser.safeParse(text).success, JSON.stringify(text));
});
