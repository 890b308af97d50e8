import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { DatagramReader, encodeDatagram } from '#shared/stream/datagram-frames.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { DatagramRelay } from '../../../../noded/net/metad-link/datagram-relay.ts';
import { GuestLines } from '../../../../noded/net/metad-link/guest-lines.ts';
import type { ServiceTarget } from '../../../../noded/net/metad-link/service-relay.ts';

const uuid = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
// The part of a request that a relay reads.
const request = { url: `/v1/instances/${uuid}/datagrams/ntp` } as IncomingMessage;

function relayTo(host: string, hostPort: number): DatagramRelay {
  const target: ServiceTarget = {
    instance: { name: 'web1', uuid, ip: '169.254.0.1' },
    port: 123,
    protocol: 'udp',
    destination: { host, hostPort },
  };
  return new DatagramRelay({
    findService: async () => target,
    failures: new GuestLines(silentLogger, systemClock),
  });
}

test("a flow ends 30 s after the guest's last datagram", async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const service = createSocket('udp4');
  t.after(() => service.close());
  service.bind(0, '127.0.0.1');
  await once(service, 'listening');
  const [ours, theirs] = duplexPair();
  t.after(() => theirs.destroy());
  theirs.on('error', () => undefined);
  await relayTo('127.0.0.1', service.address().port).accept(request, ours, Buffer.alloc(0));
  const [head] = (await once(theirs, 'data')) as [Buffer];
  assert.match(head.toString(), /^HTTP\/1\.1 101 /);
  const ask = async (): Promise<void> => {
    theirs.write(encodeDatagram(Buffer.from('time?')));
    const [, { port, address }] = (await once(service, 'message')) as [
      Buffer,
      { port: number; address: string },
    ];
    service.send('now', port, address);
    const [frame] = (await once(theirs, 'data')) as [Buffer];
    assert.deepEqual(new DatagramReader(4096).push(frame).map(String), ['now']);
  };
  await ask();
  t.mock.timers.tick(29_000);
  await ask();
  t.mock.timers.tick(29_999);
  assert.equal(ours.destroyed, false);
  t.mock.timers.tick(1);
  assert.equal(ours.destroyed, true);
});

test('a flow that metad cancels before it is open leaves no socket', async () => {
  const sockets = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length;
  const before = sockets();
  const [ours, theirs] = duplexPair();
  const accepted = relayTo('127.0.0.1', 9).accept(request, ours, Buffer.alloc(0));
  theirs.destroy();
  ours.destroy();
  await accepted;
  assert.equal(sockets(), before);
});

test('a service whose host cannot be resolved gets 502', async () => {
  const [ours, theirs] = duplexPair();
  await relayTo('ntp.invalid', 123).accept(request, ours, Buffer.alloc(0));
  const [head] = (await once(theirs, 'data')) as [Buffer];
  assert.match(head.toString(), /^HTTP\/1\.1 502 .*service 'ntp' is unreachable\n$/s);
});
