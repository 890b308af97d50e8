import assert from 'node:assert/strict';
import { test } from 'node:test';
import { relayedLocation, relayTarget } from '../../../../noded/net/relay/relay-target.ts';

const relay = {
  url: 'https://api.example.com/v1',
  auth: { kind: 'bearer' },
  paths: undefined,
} as const;
const limited = { ...relay, paths: ['/repos/a', '/open/'] };
const byQuery = { ...relay, auth: { kind: 'query', name: 'api_key' } } as const;

function sent(settings: Parameters<typeof relayTarget>[0], target: string): string | undefined {
  const judged = relayTarget(settings, target);
  if ('refusal' in judged) return undefined;
  return `${judged.url.href}${judged.query === null ? '' : `?${judged.query}`}`;
}

test('paths are sent as the guest wrote them, below the URL', () => {
  const base = 'https://api.example.com/v1/';
  for (const path of [
    ...[
      '',
      'a',
      'a/',
      'a/b.c',
      'a/...',
      "a/b,c;d=1/(x)'!$&*+:@~_-",
      '@scope%2fname',
      'a%20b',
      'a%25b',
    ],
    ...['%E2%82%AC', 'a?x=1&y=a/b?c', "a?filter=name%20eq%20'x'", 'a?x[]=1', 'a.git/info/refs'],
  ])
    assert.equal(sent(relay, path), base + path, path);
  assert.equal(sent(relay, 'a?'), `${base}a`);
});

test('a path that could lead elsewhere is refused', () => {
  for (const path of [
    ...['..', '../x', 'a/..', 'a/../../x', '.', 'a/./b', '/x', '//evil.example/x', 'a//b', 'a///'],
    ...['%2e%2e', '%2E./x', '.%2e/x', 'a/%2e', '..%2fx', 'a%2f..%2fx', '%2fx', 'a%2f', 'a%2f%2fb'],
    ...[
      '..%5cx',
      'a\\b',
      '\\\\evil.example',
      '%5c',
      '%00',
      'a%0d%0ax',
      'a%7f',
      'a b',
      'a\tb',
      'a\r\nb',
    ],
    ...[
      '%252e%252e/x',
      '%252f',
      'a%255cb',
      'a%2500',
      '..;/x',
      '..;a=b/x',
      '.;/x',
      ';/x',
      '%2e%2e;x/y',
    ],
    ...[
      '%3fx',
      '%23x',
      'a#b',
      '#',
      'a?x#y',
      '%',
      '%2',
      '%zz',
      '%ff',
      '%c0%ae%c0%ae/x',
      'é',
      'a?x=é',
    ],
    ...['a?x=<y>', 'a?x="y"', 'a?x=%', 'a?x\r\nb', 'a`b', '{a}', 'a|b', 'a^b', 'x'.repeat(9000)],
  ])
    assert.equal(sent(relay, path), undefined, JSON.stringify(path.slice(0, 40)));
});

test('nothing in a path changes the server', () => {
  for (const path of [
    '@evil.example/',
    'user@evil.example',
    ':80@evil.example',
    'https:evil.example',
  ])
    assert.equal(new URL(sent(relay, path) ?? '').origin, 'https://api.example.com', path);
  for (const path of ['https://evil.example/', 'http:///x', '/\\evil.example'])
    assert.equal(sent(relay, path), undefined, path);
});

test('allowed paths are compared by whole segments', () => {
  for (const path of ['repos/a', 'repos/a/', 'repos/a/b?c', 'open/x', 'open/'])
    assert.ok(sent(limited, path) !== undefined, path);
  for (const path of [
    '',
    'repos',
    'repos/',
    'repos/ab',
    'repos/a%2fb',
    'repos%2fa',
    'Repos/a',
    'open',
    'x/repos/a',
    'repos/%61',
  ])
    assert.equal(sent(limited, path), undefined, path);
});

test('the query cannot contain the parameter of the credential in any spelling', () => {
  for (const query of [
    ...[
      'api_key=x',
      'a=1&api_key=x',
      'api_key',
      'API_KEY=x',
      'api%5fkey=x',
      'a;api_key=x',
      'api_key[]=x',
    ],
    ...['api_key%5B%5D=x', '+api_key=x', 'api.key=x', 'api+key=x', 'a?api_key=x', '%61pi_key=1'],
  ])
    assert.equal(sent(byQuery, `x?${query}`), undefined, query);
  assert.ok(sent(byQuery, 'x?api_keys=1&b=api_key') !== undefined);
  assert.ok(sent(relay, 'x?api_key=1') !== undefined);
});

test('a redirection within the relay becomes a path of the relay, any other none', () => {
  const at = new URL('https://api.example.com/v1/a/b');
  const map = (location: string, settings: Parameters<typeof relayedLocation>[0] = relay) =>
    relayedLocation(settings, 'api', at, location);
  assert.equal(map('c?x=1#y'), '/relay/api/a/c?x=1#y');
  assert.equal(map('/v1/z/'), '/relay/api/z/');
  assert.equal(map('https://api.example.com:443/v1/z'), '/relay/api/z');
  assert.equal(map('/v1/z?api_key=SECRET&b=1', byQuery), '/relay/api/z?b=1');
  for (const location of [
    ...[
      '/',
      '/v2',
      '/v1',
      '../../x',
      '//evil.example/v1/x',
      'http://api.example.com/v1/x',
      'ftp:x',
    ],
    ...[
      'https://api.example.com:444/v1/x',
      'https://u@api.example.com/v1/x',
      '%2e%2e/%2e%2e/x',
      'http://[',
    ],
    ...['javascript:1', '/v1/..%2fx'],
  ])
    assert.equal(map(location), undefined, location);
  assert.equal(map('/v1/repos/b', limited), undefined);
});
