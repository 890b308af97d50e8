import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { createNodeClient, type NodeClient } from '../../../cluster-cli/client/node-client.ts';

/** Creates a client of a daemon that answers every request with 204. */
async function createLab(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-client-'));
  t.after(() => rm(folder, { recursive: true }));
  const socketPath = join(folder, 'noded.sock');
  const requests: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push(`${request.method} ${request.url} ${body}`.trimEnd());
      response.writeHead(204).end();
    });
  });
  server.listen(socketPath);
  t.after(() => server.close());
  await once(server, 'listening');
  return { client: createNodeClient({ socketPath, startCommand: 'gnt-noded' }), requests };
}

const cases: readonly [request: string, call: (client: NodeClient) => Promise<unknown>][] = [
  ['GET /v1/nodes', (client) => client.ask('GET /v1/nodes')],
  [
    'DELETE /v1/nodes/node%2F2?forget-instances=1',
    (client) =>
      client.ask('DELETE /v1/nodes/{name}', {
        name: 'node/2',
        query: { 'forget-instances': '1' },
      }),
  ],
  [
    'DELETE /v1/nodes/node2',
    (client) =>
      client.ask('DELETE /v1/nodes/{name}', {
        name: 'node2',
        query: { 'forget-instances': undefined },
      }),
  ],
  [
    'POST /v1/images/resolve {"name":"debian-13"}',
    (client) => client.ask('POST /v1/images/resolve', { body: { name: 'debian-13' } }),
  ],
  [
    'GET /v1/instance-summaries?fields=name,status',
    (client) => Array.fromAsync(client.instanceSummaries(['name', 'status'])),
  ],
  [
    'GET /v1/instances/web1/metadata/openstack/a%20b?partial=1',
    (client) => client.metadata('web1', 'openstack/a b?partial=true'),
  ],
  ['GET /v1/instances/web1/metadata/', (client) => client.metadata('web1', '')],
  ['GET /v1/instances/web1/queue?wait=0', (client) => client.receive('web1', 0)],
  ['POST /v1/instances/web1/queue hello', (client) => client.send('web1', Buffer.from('hello'))],
];

for (const [request, call] of cases)
  test(`the client sends ${request}`, async (t) => {
    const { client, requests } = await createLab(t);
    await call(client);
    assert.deepEqual(requests, [request]);
  });

test('the client refuses an empty name before it sends anything', async (t) => {
  const { client, requests } = await createLab(t);
  await assert.rejects(client.ask('GET /v1/instances/{name}', { name: '' }), { code: 'USAGE' });
  assert.deepEqual(requests, []);
});

test('a call that does not fit the table does not compile', () => {
  const misuse = (client: NodeClient): readonly unknown[] => [
    // @ts-expect-error The table has no such endpoint.
    client.ask('GET /v1/node5'),
    // @ts-expect-error The path needs a name.
    client.ask('GET /v1/instances/{name}'),
    // @ts-expect-error The body needs a name.
    client.ask('POST /v1/images/remove', { body: { title: 'debian' } }),
    // @ts-expect-error The endpoint answers with a stream of lines.
    client.ask('GET /v1/jobs/{id}/events', { id: 1 }),
  ];
  assert.equal(misuse.length, 1);
});
