import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isUpgrade } from '#shared/contract/endpoint.ts';
import { listEndpoints } from '#shared/contract/endpoints.ts';
import { createConnectionApi } from '../../../../noded/api/http/api-server.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';

const endpoints = listEndpoints().filter((endpoint) => !isUpgrade(endpoint));
const forPeers = endpoints.filter((endpoint) => endpoint.forPeers);

/** Creates the node's API as other nodes of the cluster see it. */
async function createPeerLab(t: TestContext) {
  const lab = await createApiLab(t);
  const dir = await mkdtemp(join(tmpdir(), 'gnt-peer-api-'));
  t.after(() => rm(dir, { recursive: true }));
  const path = join(dir, 'socket');
  const take = createConnectionApi(lab.served);
  const server = createServer((connection) => take(connection, 'node2'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.after(() => server.close());
  return { ...lab, local: lab.path, peer: path };
}

test('another node is refused every route that nodes do not ask each other for', async (t) => {
  const { peer, local } = await createPeerLab(t);
  const refused = endpoints.filter((endpoint) => !forPeers.includes(endpoint));
  const paths: readonly string[] = refused.map(({ key }) => key);
  for (const kept of [
    ...['POST /v1/cluster/renew-crypto', 'POST /v1/cluster/join-tokens', 'DELETE /v1/nodes/{name}'],
    ...['POST /v1/images/import', 'GET /v1/jobs', 'GET /v1/instances', 'GET /v1/cluster'],
    ...['GET /metrics', 'GET /v1/doctor-of-nodes', 'POST /v1/catalogues', 'GET /v1/exports'],
  ])
    assert.ok(paths.includes(kept), kept);
  for (const { key, method, path } of refused) {
    const asked = path.replace(/\{\*?\w+\}/g, 'x');
    const answer = await ask(peer, method, asked, method === 'POST' ? '{}' : undefined);
    assert.equal(answer.status, 403, `${method} ${path}`);
    assert.match(answer.text, /"code":"NOT_FOR_PEERS"/, `${method} ${path}`);
    // An answer without an end.
    if (key === 'GET /v1/events') continue;
    assert.ok(!(await ask(local, method, asked)).text.includes('NOT_FOR_PEERS'), path);
  }
});

test('another node submits operations on instances, and none that change the cluster', async (t) => {
  const { peer } = await createPeerLab(t);
  const submit = (opcode: object, query = '') =>
    ask(peer, 'POST', `/v1/jobs${query}`, JSON.stringify(opcode));
  for (const opcode of [
    { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
    { opcode: 'OS_SET_PARAMS', name: 'debian', trusted: true },
    { opcode: 'NODE_SET_PARAMS', name: 'node1', offline: true },
    { opcode: 'BACKUP_REMOVE', name: 'web1' },
    { opcode: 'PROFILE_REMOVE', name: 'site' },
    { opcode: 'NETWORK_REMOVE', name: 'lan' },
  ])
    for (const query of ['', '?dry-run=1', '?dry-run=job'])
      assert.match(
        (await submit(opcode, query)).text,
        /"code":"NOT_FOR_PEERS"/,
        `${opcode.opcode}${query}`,
      );
  const shutdown = await submit({ opcode: 'INSTANCE_SHUTDOWN', name: 'web1' });
  assert.equal(shutdown.status, 202);
  const { id } = JSON.parse(shutdown.text) as { id: number };
  assert.equal((await ask(peer, 'GET', `/v1/jobs/${id}`)).status, 200);
});

test('every route that nodes ask each other for exists', () => {
  const names: readonly string[] = forPeers.map(({ key }) => key);
  for (const asked of [
    ...['GET /v1/node', 'GET /v1/os', 'GET /v1/os/{name}', 'GET /v1/orphans', 'POST /v1/jobs'],
    ...[
      'GET /v1/doctor',
      'GET /v1/own-instances',
      'GET /v1/machines/events',
      'POST /v1/cluster/key-steps',
    ],
    ...['GET /v1/jobs/{id}', 'GET /v1/jobs/{id}/events', 'DELETE /v1/jobs/{id}'],
    ...['GET /v1/instances/{name}', 'GET /v1/instances/{name}/log'],
    ...['POST /v1/arrivals/{uuid}/check', 'POST /v1/arrivals/{uuid}/{session}/files/{name}'],
  ])
    assert.ok(names.includes(asked), asked);
});

test('no path that another node asks for ends in an unexpected error', async (t) => {
  const { peer } = await createPeerLab(t);
  const odd = [
    '%00',
    '..%2f..%2fetc',
    '%E0%A4%A',
    '%',
    'a'.repeat(2000),
    '__proto__',
    '%ff',
    '%0a',
  ];
  for (const { method, path } of forPeers)
    for (const part of odd) {
      const asked = path.replace(/\{\*?\w+\}/g, part);
      if (asked === path) continue;
      const { status, text } = await ask(peer, method, asked, method === 'POST' ? '{}' : undefined);
      assert.ok(status < 500, `${method} ${asked.slice(0, 80)}: ${status} ${text.slice(0, 300)}`);
    }
});
