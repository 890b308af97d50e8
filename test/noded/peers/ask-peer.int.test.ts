import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { AppError } from '#shared/errors/app-error.ts';
import { askPeer } from '../../../noded/peers/ask-peer.ts';

const CREATED =
  'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"id"';

test('who breaks off is told apart: a question can be asked again, an order may be done already', async (t) => {
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
  const peers = {
    open: async () => {
      const socket = connect(path);
      await once(socket, 'connect');
      return socket;
    },
  };
  for (const [method, mayBeDone] of [
    ['GET', undefined],
    ['POST', true],
    ['DELETE', true],
  ] as const) {
    for (says of ['', CREATED]) {
      await assert.rejects(
        askPeer(peers, 'other', { method, path: '/v1/jobs' }, z.unknown()),
        (error) => {
          assert.ok(error instanceof AppError);
          assert.equal(error.code, 'NODE_UNREACHABLE');
          assert.equal(error.details['mayBeDone'], mayBeDone, `${method} ${says}`);
          assert.equal(/may be doing it/.test(error.message), mayBeDone === true);
          return true;
        },
      );
    }
  }
});
