import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { type GateAnswer, gateRequests } from '../../../metad/http/gate.ts';

const MORE = '?'.repeat(1000);
const UPGRADE = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n';

async function listen(t: TestContext, server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

async function gated(t: TestContext, ask: () => GateAnswer): Promise<Server> {
  const server = await listen(t, createServer());
  server.on('connection', (socket) => gateRequests(socket, ask));
  return server;
}

function send(t: TestContext, server: Server, text: string): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.after(() => socket.destroy());
  socket.write(text);
  return socket;
}

for (const [what, text] of [
  ['who is stopped', `GET / HTTP/1.1\r\nHost: a\r\n\r\n${MORE}`],
  ['what is no request', MORE],
] as const) {
  test(`the read of ${what} is not copied`, async (t) => {
    const server = await gated(t, () => 'stop');
    send(t, server, text);
    const [error, socket] = (await once(server, 'clientError')) as [{ rawPacket: Buffer }, Socket];
    assert.equal(error.rawPacket.length, 0);
    socket.destroy();
  });
}

test('a connection that is taken out carries the bytes behind its request', async (t) => {
  const server = await gated(t, () => 'take-out');
  send(t, server, `GET / HTTP/1.1\r\nHost: a\r\n\r\n${MORE}`);
  const [, socket, rest] = (await once(server, 'upgrade')) as [IncomingMessage, Socket, Buffer];
  assert.equal(rest.toString(), MORE);
  socket.destroy();
});

test('a stopped parser that Node reuses for another server copies its read', async (t) => {
  const server = await gated(t, () => 'stop');
  send(t, server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const [, stopped] = (await once(server, 'clientError')) as [Error, Socket];
  const { parser } = stopped as Socket & { parser: object };
  stopped.destroy();
  await once(stopped, 'close');
  const other = await listen(t, createServer());
  const accepted = once(other, 'connection') as Promise<[Socket]>;
  send(t, other, UPGRADE + MORE);
  const upgrade = once(other, 'upgrade') as Promise<[IncomingMessage, Socket, Buffer]>;
  const used = (await accepted)[0] as Socket & { parser: object };
  assert.equal(used.parser, parser, 'Node uses it again');
  const [, socket, rest] = await upgrade;
  assert.equal(rest.toString(), MORE);
  socket.destroy();
});
