import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuseUnusableServices } from '../../../noded/operations/refuse-services.ts';

const host = { host: '127.0.0.1', hostPort: 53 };
const udp = { protocol: 'udp' } as const;

test('a port may have a TCP and a UDP service, ports that the channel has taken for one among them', () => {
  refuseUnusableServices({
    dns: { port: 53, ...host },
    'dns-udp': { port: 53, ...host, ...udp },
    web: { port: 80, ...host, ...udp },
    boot: { port: 67, ...host },
  });
});

for (const [services, message] of [
  [{ a: { port: 53, ...host }, b: { port: 53, ...host } }, "port 53 is in use by service 'a'"],
  [
    { a: { port: 53, ...host, ...udp }, b: { port: 53, ...host, ...udp } },
    "service 'b': port 53 is in use by service 'a'",
  ],
  [{ a: { port: 80, ...host } }, 'port 80 is in use by the metadata service'],
  [{ a: { port: 67, ...host, ...udp } }, "port 67 is in use by the channel's DHCP"],
  [
    { dns: { port: 53, socketPath: '/run/dns.sock', ...udp } },
    "service 'dns': a unix socket cannot serve UDP",
  ],
] as const) {
  test(`refuses what cannot be: ${message}`, () => {
    assert.throws(
      () => refuseUnusableServices(services),
      (error: Error) => error.message.includes(message),
    );
  });
}
