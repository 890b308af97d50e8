import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { createRedis } from '#shared/store/redis-connection.ts';
import { freePorts } from '../../noded/support/free-ports.ts';
import { startRedis } from '../../noded/support/redis-server.ts';

const AGAIN_WITHIN_MS = 10_000;
const NEW_MASTER = '*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$3\r\nnew\r\n';

interface SlowSentinel {
  readonly port: number;
  /** Announces a new master to later questions, before it is known. */
  beginFailover(): void;
  readonly subscribed: Promise<unknown>;
}

/** Starts a fake Sentinel: the time when a real one notices a failover cannot be set. */
async function startSlowSentinel(t: TestContext, master: number): Promise<SlowSentinel> {
  const told = Promise.withResolvers<undefined>();
  const listeners = new Set<Socket>();
  let isFailingOver = false;
  const address = `*2\r\n$9\r\n127.0.0.1\r\n$${String(master).length}\r\n${master}\r\n`;
  const answer = async (socket: Socket, command: string): Promise<void> => {
    if (command.includes('hello')) socket.write('-NOPROTO this is no RESP3\r\n');
    else if (command.includes('sentinels')) socket.write('*0\r\n');
    else if (command.includes('subscribe')) {
      listeners.add(socket);
      socket.write('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
      told.resolve(undefined);
    } else if (!command.includes('get-master-addr-by-name')) socket.write('+OK\r\n');
    else {
      if (isFailingOver) for (const listener of listeners) listener.write(NEW_MASTER);
      if (isFailingOver) await sleep(100);
      isFailingOver = false;
      socket.write(address);
    }
  };
  const server = createServer((socket) => {
    socket.on('error', () => undefined).on('close', () => listeners.delete(socket));
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const [command] of text.matchAll(/\*\d+\r\n(?:\$\d+\r\n[^\r]*\r\n)+/g))
        void answer(socket, command.toLowerCase());
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // of TCP
  return { port, beginFailover: () => (isFailingOver = true), subscribed: told.promise };
}

test('a client that is told of a new master while it asks who it is comes back', async (t) => {
  const [port = 0] = await freePorts(1);
  const redis = await startRedis({ more: ['--port', String(port)] });
  t.after(() => redis.stop());
  const sentinel = await startSlowSentinel(t, port);
  const server = { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'gnt' };
  const client = createRedis(server, { commandTimeout: 1000 });
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  await client.connect();
  await sentinel.subscribed;
  sentinel.beginFailover();
  // A separate client: an interrupted command would be repeated, and interrupted again.
  const admin = createRedis({ url: `redis://127.0.0.1:${port}` }, {});
  t.after(() => admin.disconnect());
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
  const deadlineMs = Date.now() + AGAIN_WITHIN_MS;
  let answered = '';
  while (answered !== 'PONG' && Date.now() < deadlineMs) {
    await sleep(100);
    answered = await client.ping().catch(String);
  }
  assert.equal(answered, 'PONG');
});
