import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { EventLog } from './channel/event-log.ts';
import { listenForControl, refuseTakenSocket } from './control/control-server.ts';
import { createMetrics } from './control/metrics.ts';
import type { GanetiConfig } from './config/config.ts';
import { GanetiDropIn } from './ganeti/drop-in.ts';
import { createPackageServer, ganetiLeaves } from './ganeti/ganeti-files.ts';
import { openListeners } from './ganeti/listeners.ts';
import { listenForGaneti } from './ganeti/luxi-server.ts';
import { claimPidFile } from './ganeti/pid-file.ts';
import { Audit } from './http/audit.ts';
import { GuestHandler } from './http/guest-handler.ts';
import { GuestServer } from './http/guest-server.ts';
import { sendText } from './http/reply.ts';

export interface GanetiDaemonOptions extends GanetiConfig {
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Starts in Ganeti mode: with Ganeti's socket and pid file, the host's network, and no gnt-noded.
 */
export async function startGanetiDaemon(options: GanetiDaemonOptions): Promise<AsyncDisposable> {
  const { clock, logger } = options;
  const startedAtMs = clock.now();
  const events = new EventLog(startedAtMs * 1000);
  const metrics = createMetrics(() => dropIn.instances());
  const serveStream = createPackageServer(options.packageDirectories);
  const handler = new GuestHandler({
    events,
    serveStream,
    // Views of Ganeti's node daemon have no identity.
    serveIdentity: async () => Promise.resolve(),
    serveCredentials: async () => Promise.resolve(),
    serveRelay: ({ response }) => sendText(response, 404, 'not found'),
    metrics,
    audit: new Audit(logger, clock),
    clock,
  });
  const guests = new GuestServer(handler, metrics);
  const dropIn: GanetiDropIn = new GanetiDropIn({
    guests,
    readLeaves: async (instance) => await ganetiLeaves(instance, options),
    deviceOf: (ip) => listeners.deviceOf(ip),
    hasListener: (device) => listeners.has(device),
    clock,
    logger,
  });
  await mkdir(dirname(options.ganetiSocket), { recursive: true });
  await mkdir(dirname(options.pidFile), { recursive: true });
  // Must come first: a running daemon's files must stay untouched.
  const pidFile = claimPidFile(options.pidFile);
  await refuseTakenSocket(options.ganetiSocket);
  const listeners = await openListeners({
    address: options.bindAddress,
    port: options.port,
    hopLimit: options.hopLimit,
    onConnection: (device, socket) => dropIn.accept(device, socket),
    addresses: () => dropIn.addresses(),
    logger,
  });
  const luxi = await listenForGaneti({
    socketPath: options.ganetiSocket,
    updateConfig: async (value) => await listeners.cover(await dropIn.updateConfig(value)),
    logger,
  });
  const control =
    options.controlSocket === null
      ? null
      : await listenForControl(options.controlSocket, {
          registry: dropIn,
          events,
          metrics,
          logger,
          startedAtMs,
        });
  pidFile.announce();
  return {
    [Symbol.asyncDispose]: async () => {
      pidFile[Symbol.dispose]();
      await luxi[Symbol.asyncDispose]();
      await control?.[Symbol.asyncDispose]();
      listeners[Symbol.dispose]();
      for (const instance of dropIn.instances()) instance.closeConnections();
      guests[Symbol.dispose]();
    },
  };
}
