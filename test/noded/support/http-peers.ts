import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { type Peers, UnreachableNode } from '../../../noded/cluster/peers/ask-peer.ts';

/** Answers of other nodes: values by node and path, or how a node fails. */
export type PeerAnswers = Readonly<
  Record<string, Readonly<Record<string, unknown>> | 'silent' | 'offline'>
>;

/** Other nodes, which answer over HTTP. A path without a value gets NOT_FOUND. */
export async function startHttpPeers(t: TestContext, answers: PeerAnswers): Promise<Peers> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-peers-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'socket');
  const server = createServer((request, response) => {
    const of = answers[request.headers.host ?? ''];
    const value = typeof of === 'object' ? of[request.url ?? ''] : undefined;
    response.statusCode = value === undefined ? 404 : 200;
    const none = { code: 'INSTANCE_NOT_FOUND', message: 'not here', hint: null, details: {} };
    // A text is sent as it is: lines of JSON, or nonsense.
    response.end(typeof value === 'string' ? value : JSON.stringify(value ?? none));
  });
  server.listen(path);
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    open: async (node) => {
      if (answers[node] === 'offline') throw new AppError('NODE_OFFLINE', `${node} is offline`);
      if (typeof answers[node] !== 'object') throw new UnreachableNode(node, { isThere: false });
      const socket = connect(path);
      await once(socket, 'connect');
      return socket;
    },
  };
}
