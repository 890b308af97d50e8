import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { text } from 'node:stream/consumers';
import { AppError } from '#shared/errors/app-error.ts';
import { giveToNodes } from '../../../../noded/cluster/membership/give-relay-secret.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

test('each node that answers gets the secret, and the others are named', async () => {
  const received: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push(`${request.method} ${request.url} ${body}`);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ nodes: ['node2'], missing: [] }));
    });
  });
  const port = await listenOnLoopback(server);
  try {
    const given: string[] = [];
    const result = await giveToNodes('api', 'secret-value', {
      nodeName: 'node1',
      nodes: { names: async () => ['node1', 'node2', 'node3'] },
      relays: { give: async (name, secret) => void given.push(`${name} ${secret}`) },
      peers: {
        open: async (node) => {
          if (node === 'node2') return connect(port, '127.0.0.1');
          throw new AppError('NODE_UNREACHABLE', `node '${node}' does not answer`);
        },
      },
    });
    assert.deepEqual(given, ['api secret-value']);
    assert.deepEqual(received, ['POST /v1/relays/api/secret {"secret":"secret-value"}']);
    assert.deepEqual(result, {
      nodes: ['node1', 'node2'],
      missing: [{ node: 'node3', reason: "node 'node3' does not answer" }],
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('no other node is asked when this node refuses', async () => {
  const refusal = new AppError('NOT_FOUND', 'there is no relay');
  const giving = giveToNodes('api', 'secret-value', {
    nodeName: 'node1',
    nodes: { names: async () => ['node1', 'node2'] },
    relays: { give: () => Promise.reject(refusal) },
    peers: { open: () => assert.fail('asked') },
  });
  await assert.rejects(giving, { code: 'NOT_FOUND' });
});
