import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RelaySettings } from '#shared/contract/relay.ts';
import { relaySettings } from '#shared/contract/relay.ts';
import { refuseUnusableRelays } from '../../../noded/operations/refuse-relays.ts';

const good: RelaySettings = {
  url: 'https://api.example.com',
  auth: { kind: 'bearer' },
  access: 'all',
};

test('a relay whose secret could leak is refused', () => {
  for (const [relay, reason] of [
    [{ url: 'http://api.example.com' }, /clear text/],
    [{ url: 'https://169.254.169.254/' }, /link-local|metadata service/],
    [{ url: 'https://[fd00:ec2::254]/' }, /metadata service/],
    [{ auth: { kind: 'header', name: 'host' } }, /cannot carry/],
    [{ auth: { kind: 'header', name: 'transfer-encoding' } }, /cannot carry/],
    [{ paths: ['/a%2e%2e'] }, undefined],
    [{ paths: ['/%2e%2e'] }, /cannot be sent unchanged/],
    [{ url: 'http://127.0.0.1:3000' }, undefined],
    [{ url: 'http://10.1.2.3/x' }, undefined],
  ] as const) {
    const check = (): void => refuseUnusableRelays({ one: { ...good, ...relay } as RelaySettings });
    if (reason === undefined) check();
    else assert.throws(check, { code: 'VALIDATION', message: reason });
  }
});

test('no more than 32 relays are accepted', () => {
  const names = Array.from({ length: 33 }, (_, index) => [`r${index}`, good] as const);
  assert.throws(() => refuseUnusableRelays(Object.fromEntries(names)), { code: 'VALIDATION' });
  refuseUnusableRelays(Object.fromEntries(names.slice(1)));
});

test('URLs with a user, a query or a fragment are no URLs of a relay', () => {
  for (const url of [
    'https://u:p@x.example',
    'https://x.example/?a',
    'https://x.example/#a',
    'ftp://x.example',
    'https://x.example/a b',
    'https:\\\\x.example',
  ])
    assert.equal(relaySettings.safeParse({ ...good, url }).success, false, url);
});
