import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEndpoint } from '../../../../noded/api/web/find-endpoint.ts';

test('an endpoint is found by its path, with the decoded name', () => {
  const found = findEndpoint('HEAD', '/v1/instances/web%31/log');
  assert.equal(found?.endpoint.key, 'GET /v1/instances/{name}/log');
  assert.equal(found.name, 'web1');
  assert.equal(findEndpoint('GET', '/v1/instances/%ff/log'), undefined);
});

test('paths that the router reads in another way are of no endpoint', () => {
  for (const path of [
    '/v1/os/debian\\x#',
    '/v1/jobs/1#',
    '/v1/instances/web1\\disks#',
    '/v1/instances/web1/metadata/a\\b#',
    '/v1/instances/web1/metadata/a\u00a0b',
    '//v1/nodes',
    '/V1/nodes',
    '/v1/nodes/',
    '/v1/./nodes',
    'http://node1/v1/nodes',
  ])
    assert.equal(findEndpoint('GET', path), undefined, path);
});
