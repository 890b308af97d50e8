import assert from 'node:assert/strict';
import type { RemoteInfo, Socket as UdpSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { MAX_DATAGRAM_FLOWS } from '#shared/contract/metad-control.ts';
import type { ViewService } from '#shared/contract/view.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { MAX_DATAGRAM_FLOWS_OF_ALL } from '../../../metad/config/limits.ts';
import { createMetrics } from '../../../metad/control/metrics.ts';
import { Audit } from '../../../metad/http/audit.ts';
import { DatagramRelay } from '../../../metad/services/datagram-relay.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const service: ViewService = { name: 'dns', port: 53, protocol: 'udp' };

/** Device-bound sockets need a namespace; the relay only needs an emitter. */
class SocketOfGuest extends EventEmitter {
  getSendQueueSize(): number {
    return 0;
  }
}

test('flows of many guests do not end the flows of a guest with few', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-flows-'));
  const socketPath = join(directory, 'content.sock');
  const open = new Map<string, Duplex[]>();
  const server = createServer();
  server.on('upgrade', (request, stream: Duplex) => {
    const uuid = request.url?.split('/')[3] ?? '';
    open.set(uuid, [...(open.get(uuid) ?? []), stream]);
    stream.on('error', () => undefined);
    stream.resume();
    stream.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n');
  });
  // As many clients connect at once.
  server.listen({ path: socketPath, backlog: 4096 });
  await once(server, 'listening');
  t.after(async () => {
    for (const stream of [...open.values()].flat()) stream.destroy();
    server.close();
    await rm(directory, { recursive: true });
  });
  const signal = AbortSignal.timeout(20_000);
  const relay = new DatagramRelay({
    socketPath,
    metrics: createMetrics(() => []),
    audit: new Audit(silentLogger, systemClock),
    clock: systemClock,
  });
  const guests = Array.from({ length: 20 }, (_, index) => {
    const view = exampleView({ uuid: `00000000-1f3d-49e9-b2b7-0000000000${index + 10}` });
    const instance = new Instance(parseView(view), systemClock);
    const socket = new SocketOfGuest();
    // The members that the relay uses.
    relay.attach(instance, service, socket as unknown as UdpSocket);
    const send = (port: number): void => {
      const source = {
        address: view.channel.ip,
        port,
        family: 'IPv4',
        size: 1,
      } satisfies RemoteInfo;
      socket.emit('message', Buffer.from('?'), source);
    };
    return { uuid: view.uuid, socket, send };
  });
  const [quiet, ...hostile] = guests;
  assert.ok(quiet);
  quiet.send(1);
  while (open.get(quiet.uuid) === undefined) await once(server, 'upgrade', { signal });
  for (let port = 1; port <= 2 * MAX_DATAGRAM_FLOWS; port++)
    for (const { send } of hostile) send(port);
  assert.equal(relay.count, MAX_DATAGRAM_FLOWS_OF_ALL);
  quiet.send(2);
  assert.equal(relay.count, MAX_DATAGRAM_FLOWS_OF_ALL);
  while (open.get(quiet.uuid)?.length !== 2) await once(server, 'upgrade', { signal });
  for (const stream of open.get(quiet.uuid) ?? []) assert.equal(stream.destroyed, false);
  for (const { socket } of hostile) socket.emit('close');
  assert.equal(relay.count, 2);
  quiet.socket.emit('close');
  assert.equal(relay.count, 0);
});
