import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';

const namespace = `gnt-sockets-${process.pid}`;
const path = `/run/netns/${namespace}`;
const ip = (...args: readonly string[]): Promise<unknown> => run('ip', ['-n', namespace, ...args]);
before(async () => {
  await run('ip', ['netns', 'add', namespace]);
  await ip('link', 'set', 'lo', 'up');
});
after(() => run('ip', ['netns', 'delete', namespace]));

test('a peer that is gone in the middle of an answer gives its connection back in time', async () => {
  const fd = inNetworkNamespace(path, () =>
    openDeviceSocket({
      ...{ device: null, type: 'tcp', address: '127.0.0.1', port: 8080 },
      unacknowledgedMs: 500,
    }),
  );
  const server = createServer({ allowHalfOpen: true });
  server.listen({ fd });
  const accepted = once(server, 'connection');
  const leaving = new AbortController();
  const client = run('ip', ['netns', 'exec', namespace, 'curl', '-s', 'telnet://127.0.0.1:8080'], {
    ...{ input: 'hello', signal: leaving.signal },
  }).catch(() => undefined);
  // The event's argument, as documented.
  const [socket] = (await accepted) as [Socket];
  await once(socket, 'data');
  // The guest vanishes without a reset.
  await ip('link', 'set', 'lo', 'down');
  const failed = once(socket, 'error');
  socket.write('an answer that nobody takes');
  assert.match(String(await failed), /ETIMEDOUT/);
  server.close();
  leaving.abort();
  await client;
});
