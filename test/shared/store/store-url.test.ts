import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { describeStoreUrl, parseStoreUrl } from '#shared/store/store-url.ts';

test('takes the URLs of Redis as they are', () => {
  for (const url of [
    'redis://127.0.0.1',
    'redis://:pass%20word@redis.example.com:6380/3',
    'rediss://user:password@[2001:db8::1]:6379',
    'unix:/run/redis/redis.sock',
    'unix:///run/redis/redis.sock',
  ]) {
    assert.deepEqual(parseStoreUrl(url), { url });
  }
});

test('takes who logs in over a unix socket, decoded, with a path behind it', () => {
  assert.deepEqual(parseStoreUrl('unix://gnt:a%40b@/run/redis.sock?replicas=2'), {
    ...{ url: 'unix:/run/redis.sock', username: 'gnt', password: 'a@b', replicas: 2 },
  });
  assert.deepEqual(parseStoreUrl('unix://:a/b@c@/r.sock'), {
    ...{ url: 'unix:/r.sock', password: 'a/b@c' },
  });
  assert.equal(describeStoreUrl('unix://gnt:hunter22@/run/r.sock'), 'unix:///run/r.sock');
});

test('takes sentinels with the name of what they watch, its password decoded', () => {
  assert.deepEqual(parseStoreUrl('sentinel://:a%40b@s1.example.com:26380,[::1],10.0.0.1/gnt'), {
    sentinels: [
      { host: 's1.example.com', port: 26_380 },
      { host: '::1', port: 26_379 },
      { host: '10.0.0.1', port: 26_379 },
    ],
    name: 'gnt',
    password: 'a@b',
  });
  assert.deepEqual(parseStoreUrl('sentinel://gnt:a%3Ab@h/n'), {
    sentinels: [{ host: 'h', port: 26_379 }],
    ...{ name: 'n', username: 'gnt', password: 'a:b' },
  });
});

test('takes with each how many replicas a write is to have', () => {
  assert.deepEqual(parseStoreUrl('redis://h/3?replicas=2'), { url: 'redis://h/3', replicas: 2 });
  assert.deepEqual(parseStoreUrl('unix:/r.sock?replicas=1'), { url: 'unix:/r.sock', replicas: 1 });
  assert.deepEqual(parseStoreUrl('sentinel://h/gnt?replicas=1'), {
    ...{ sentinels: [{ host: 'h', port: 26_379 }], name: 'gnt', password: undefined },
    replicas: 1,
  });
});

test('refuses everything else by name, never with a password', () => {
  for (const url of [
    '',
    'mysql://:hunter22@h/db',
    'sqlite:/var/lib/store',
    'redis://',
    'redis://:hunter22@/0',
    'redis://:hun@ter22@h:99999',
    'redis://:hunter22@h/0/1',
    'redis://:hunter22@h?tls=no',
    'redis://:hunter22@h:6379 ',
    'redis://:hunter22@h?replicas=0',
    'redis://:hunter22@h?replicas=10',
    'sentinel://:hunter22@h/gnt?replicas=x',
    'rediss://:hun/ter22@h',
    'unix:redis.sock',
    'unix:hunter22@/r.sock',
    'unix://gnt@/r.sock',
    'unix://:hunter22@r.sock',
    'sentinel://:hunter22@h:26379',
    'sentinel://:hunter22@h:0/gnt',
    'sentinel://:hunter22@/gnt',
    `redis://${'h'.repeat(3000)}`,
  ]) {
    assert.throws(
      () => parseStoreUrl(url),
      (error) =>
        isAppError(error, 'USAGE') &&
        error.message.startsWith("--store: '") &&
        !/hun|ter22/.test(error.message),
      url,
    );
  }
});

test('shows where a store is without who logs in', () => {
  assert.equal(describeStoreUrl('redis://u:p@s/s@h:1/2'), 'redis://h:1/2');
  assert.equal(describeStoreUrl('sentinel://:p@a:1,b:2/n'), 'sentinel://a:1,b:2/n');
  assert.equal(describeStoreUrl('unix:/run/redis.sock'), 'unix:/run/redis.sock');
});
