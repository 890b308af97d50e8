import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '#shared/clock/clock.ts';
import { METAD_FILE_SOCKET } from '#shared/contract/metad-control.ts';
import type { Logger } from '#shared/log/log.ts';
import { programData } from '#shared/paths/program-file.ts';
import { findInterfaceIndex } from '#shared/sys/network-sockets.ts';
import { DeviceBinding } from './channel/device-binding.ts';
import { EventLog } from './channel/event-log.ts';
import type { Instance } from './channel/instance.ts';
import { NAME_SERVICE } from './channel/name-service.ts';
import { Registry } from './channel/registry.ts';
import type { Binding } from './channel/registry.ts';
import { listenForControl } from './control/control-server.ts';
import { createMetrics } from './control/metrics.ts';
import { createDhcpHandler } from './dhcp/serve-dhcp.ts';
import { Audit } from './http/audit.ts';
import { createContentProxy } from './http/content-proxy.ts';
import { HandedFiles } from './http/handed-files.ts';
import { GuestHandler } from './http/guest-handler.ts';
import { GuestServer } from './http/guest-server.ts';
import { createServeCredentials } from './http/serve-credentials.ts';
import { createServeIdentity } from './http/serve-identity.ts';
import { createServeRelay } from './http/serve-relay.ts';
import { serveNames } from './names/serve-names.ts';
import { DatagramRelay } from './services/datagram-relay.ts';
import { createServiceRelay } from './services/service-relay.ts';
import { createGuestAgent } from './view/guest-agent.ts';

export interface DaemonOptions {
  readonly controlSocket: string;
  readonly contentSocket: string;
  readonly isSuccessor: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Wires the parts: guests' sockets, their handler, and the node daemon's control socket. */
export async function startDaemon(options: DaemonOptions): Promise<AsyncDisposable> {
  const { clock, logger } = options;
  const startedAtMs = clock.now();
  // Microseconds of the start: larger than any number of an earlier process.
  const events = new EventLog(startedAtMs * 1000);
  const metrics = createMetrics(
    () => registry.instances(),
    () => datagrams.count,
  );
  const audit = new Audit(logger, clock);
  const handed = new HandedFiles(join(dirname(options.contentSocket), METAD_FILE_SOCKET));
  const serveStream = createContentProxy(options.contentSocket, handed);
  const socketPath = options.contentSocket;
  const serveIdentity = createServeIdentity(socketPath, audit);
  const serveCredentials = createServeCredentials({ socketPath, audit, clock });
  const serveRelay = createServeRelay(socketPath, audit);
  const handler = new GuestHandler({
    ...{ events, serveStream, serveIdentity, serveCredentials, serveRelay, metrics, audit, clock },
  });
  const guests = new GuestServer(handler, metrics);
  const services = { socketPath: options.contentSocket, metrics, audit, clock };
  const relay = createServiceRelay(services);
  const datagrams = new DatagramRelay(services);
  const abort = new AbortController();
  const open = async (instance: Instance, device: string): Promise<Binding> => {
    const dhcp = createDhcpHandler(instance, { clock, logger, audit, metrics });
    const binding = await DeviceBinding.open(
      {
        device,
        hopLimit: instance.view.channel.hopLimit,
        logger,
        handlers: {
          onConnection: (socket) => guests.accept(instance, socket),
          onServiceConnection: (service, socket) => relay(instance, service, socket),
          onServiceSocket: (service, socket) =>
            service === NAME_SERVICE
              ? serveNames(instance, socket, { clock, metrics })
              : datagrams.attach(instance, service, socket),
          onDhcpMessage: dhcp,
        },
      },
      abort.signal,
    );
    return withDeviceCheck(binding);
  };
  const guestAgent = createGuestAgent(
    await readFile(programData('metad/guest/agent.sh'), 'utf8'),
    await readFile(programData('metad/guest/enable.sh'), 'utf8'),
  );
  // After a kill, a guest that reads the queue asks for the byte after its last one. With numbers
  // from 0 it would miss the first bytes of the new queues.
  const firstQueueOffset = options.isSuccessor ? startedAtMs * 1000 : 0;
  const registry = new Registry({ open, events, clock, guestAgent, firstQueueOffset });
  const control = await listenForControl(options.controlSocket, {
    registry,
    events,
    metrics,
    logger,
    startedAtMs,
  });
  return {
    [Symbol.asyncDispose]: async () => {
      abort.abort();
      await control[Symbol.asyncDispose]();
      await registry.removeAll();
      guests[Symbol.dispose]();
      handed[Symbol.dispose]();
    },
  };
}

function withDeviceCheck(binding: DeviceBinding): Binding {
  return {
    device: binding.device,
    isCurrent: () =>
      binding.isOpen && binding.interfaceIndex === findInterfaceIndex(binding.device),
    setHopLimit: (hopLimit) => binding.setHopLimit(hopLimit),
    setServices: (services) => binding.setServices(services),
    [Symbol.asyncDispose]: async () => await binding[Symbol.asyncDispose](),
  };
}
