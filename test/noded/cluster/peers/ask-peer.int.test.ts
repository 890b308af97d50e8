import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import {
  askPeer,
  MAX_ANSWER_VALUES,
  type Peers,
} from '../../../../noded/cluster/peers/ask-peer.ts';

const CREATED =
  'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"id"';

/** Starts a node that gives the same answer to every request. */
async function startNode(t: TestContext): Promise<{ peers: Peers; say: (answer: string) => void }> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-peer-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'socket');
  let says = '';
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(says));
  });
  server.listen(path);
  await once(server, 'listening');
  t.after(() => server.close());
  const open = async (): Promise<Socket> => {
    const socket = connect(path);
    await once(socket, 'connect');
    return socket;
  };
  return { peers: { open }, say: (answer) => (says = answer) };
}

test('an answer with too many values is refused', async (t) => {
  const { peers, say } = await startNode(t);
  const ask = (): Promise<unknown> => askPeer(peers, 'other', 'DELETE /v1/jobs/{id}', { id: 1 });
  const HEAD = 'HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\n';
  say(`${HEAD}{"of":[{},{}]}`);
  assert.deepEqual(await ask(), {});
  say(`${HEAD}{"of":[${'{},'.repeat(MAX_ANSWER_VALUES / 2)}{}]}`);
  await assert.rejects(ask(), { code: 'NODE_UNREACHABLE', message: /closed the connection/ });
});

test('a broken POST or DELETE may be done, and a broken GET is not', async (t) => {
  const { peers, say } = await startNode(t);
  for (const [key, mayBeDone] of [
    ['GET /v1/jobs/{id}', undefined],
    ['POST /v1/arrivals/{uuid}/end', true],
    ['DELETE /v1/jobs/{id}', true],
  ] as const) {
    for (const says of ['', CREATED]) {
      say(says);
      await assert.rejects(askPeer(peers, 'other', key, { id: 1, uuid: '1' }), (error) => {
        assert.ok(error instanceof AppError);
        assert.equal(error.code, 'NODE_UNREACHABLE');
        assert.equal(error.details['mayBeDone'], mayBeDone, `${key} ${says}`);
        assert.equal(/may still be running there/.test(error.message), mayBeDone === true);
        return true;
      });
    }
  }
});

test('a switch of protocols that was not requested is a broken answer', async (t) => {
  const { peers, say } = await startNode(t);
  say('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
  await assert.rejects(askPeer(peers, 'other', 'GET /v1/jobs/{id}', { id: 1 }), {
    code: 'NODE_UNREACHABLE',
  });
});
