import { createServer } from 'node:net';
import { systemClock as clock } from '#shared/clock/clock.ts';
import { createLogger } from '#shared/log/log.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';
import type { Instance } from '../../../metad/channel/instance.ts';
import { Registry } from '../../../metad/channel/registry.ts';
import { listenForControl } from '../../../metad/control/control-server.ts';
import { createMetrics } from '../../../metad/control/metrics.ts';
import { Audit } from '../../../metad/http/audit.ts';
import { GuestHandler } from '../../../metad/http/guest-handler.ts';
import { GuestServer } from '../../../metad/http/guest-server.ts';
import { sendText } from '../../../metad/http/reply.ts';

/**
 * `node metad-host.ts CONTROL_SOCKET PORT` runs metad's modules with more instances than a host can
 * have TAPs. The loopback address of a connection selects the instance: 127.1.X.Y stands for the
 * channel address 169.254.X.Y.
 */
const [controlSocket = '', port = ''] = process.argv.slice(2);
const logger = createLogger({ program: 'metad-host', level: 'info', fd: 2 });
const guestsByAddress = new Map<string, Instance>();
const events = new EventLog(0);
const metrics = createMetrics(() => registry.instances());
const handler = new GuestHandler({
  events,
  metrics,
  audit: new Audit(logger, clock),
  clock,
  serveStream: ({ response }) => sendText(response, 502, 'there is no node daemon'),

  serveIdentity: async () => undefined,
  serveCredentials: async () => undefined,

  serveRelay: ({ response }) => void response.writeHead(404).end(),
});
const guests = new GuestServer(handler, metrics);
const registry: Registry = new Registry({
  events,
  clock,
  open: async (instance, device) => {
    const address = instance.view.channel.ip.replace('169.254.', '127.1.');
    guestsByAddress.set(address, instance);
    return {
      device,
      isCurrent: () => true,
      setHopLimit: () => undefined,
      setServices: () => undefined,
      [Symbol.asyncDispose]: async () => void guestsByAddress.delete(address),
    };
  },
});
const options = { allowHalfOpen: true, noDelay: true, keepAlive: true };
createServer(options, (socket) => {
  const instance = guestsByAddress.get(socket.localAddress ?? '');
  if (instance) guests.accept(instance, socket, true);
  else socket.destroy();
}).listen({ host: '0.0.0.0', port: Number(port), backlog: 1024 });
// Collects garbage before a measurement of memory.
process.on('SIGUSR2', () => globalThis.gc?.());
await listenForControl(controlSocket, {
  registry,
  events,
  metrics,
  logger,
  startedAtMs: clock.now(),
});
