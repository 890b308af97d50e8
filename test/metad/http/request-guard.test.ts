import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardRequest, matchesEtag } from '../../../metad/http/request-guard.ts';

const statusOf = (headers: string[], authority: string | null = null): number => {
  const result = guardRequest(headers, authority, false);
  return result.ok ? 200 : result.status;
};

test('our own addresses pass as host, with the port and with a zone', () => {
  for (const host of [
    '169.254.169.254',
    '169.254.169.254:80',
    '[fe80::a9fe:a9fe]',
    '[FE80::A9FE:A9FE]:80',
    '[fe80::a9fe:a9fe%eth0]',
    '[fe80::a9fe:a9fe%25eth0]',
  ]) {
    assert.equal(statusOf(['Host', host]), 200, host);
  }
  assert.equal(statusOf([]), 200);
});

test('a host is needed since HTTP/1.1', () => {
  const refused = guardRequest(['Accept', '*/*'], null, true);
  assert.equal(refused.ok ? 200 : refused.status, 400);
  assert.equal(guardRequest(['Host', '169.254.169.254'], null, true).ok, true);
});

test('Google’s name of the service is accepted, which other sites cannot have', () => {
  assert.ok(guardRequest(['Host', 'metadata.google.internal'], null, true).ok);
});

test('any other host is refused', () => {
  for (const host of [
    '',
    'evil.example',
    '169.254.169.254:8080',
    '169.254.169.254.evil.example',
    '169.254.169.2544',
    'metadata.google.internal.evil.example',
    'metadata.google.internal:8080',
    'localhost',
    '[fe80::1]',
    'x@169.254.169.254',
    '169.254.169.254 ',
  ]) {
    assert.equal(statusOf(['Host', host]), 403, host);
  }
  assert.equal(statusOf(['Host', '169.254.169.254'], 'evil.example'), 403);
  assert.equal(statusOf(['Host', 'evil.example'], '169.254.169.254'), 403);
});

test('two hosts are malformed, even when they are equal', () => {
  assert.equal(statusOf(['Host', '169.254.169.254', 'host', '169.254.169.254']), 400);
});

test('forwarded requests are refused whatever the case of the header', () => {
  for (const name of ['X-Forwarded-For', 'x-forwarded-for', 'Forwarded', 'FORWARDED']) {
    assert.equal(statusOf(['Host', '169.254.169.254', name, '']), 403, name);
  }
});

test('validators match weakly, in lists, and by star', () => {
  for (const header of ['"a"', 'W/"a"', '"b", "a"', '*', ' "a" ']) {
    assert.equal(matchesEtag(header, '"a"'), true, header);
  }
  for (const header of ['"b"', 'a', '', '"a'])
    assert.equal(matchesEtag(header, '"a"'), false, header);
});
