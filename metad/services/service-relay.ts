import type { Socket } from 'node:net';
import type { Clock } from '#shared/clock/clock.ts';
import { SOURCE_PORT_HEADER } from '#shared/contract/metad-control.ts';
import type { ViewService } from '#shared/contract/view.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { upgradeOverSocket } from '#shared/socket/http-request.ts';
import { joinStreams } from '#shared/stream/join-streams.ts';
import { hasOwnAddress } from '../channel/has-own-address.ts';
import type { Instance } from '../channel/instance.ts';
import type { Audit } from '../http/audit.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';

/** Fallback: the node daemon gives up earlier. */
const OPEN_TIMEOUT_MS = 15_000;

export interface ServiceRelayOptions {
  /** The node daemon's content socket: only the node daemon can leave the channel's namespace. */
  readonly socketPath: string;
  readonly metrics: GuestMetrics;
  readonly audit: Audit;
  readonly clock: Clock;
}

/**
 * Relays a guest's connection to the node daemon, which knows the target of the service. It counts
 * as one of the guest's connections and requests. A failure is a reset, which the guest notices at
 * once.
 */
export function createServiceRelay(
  options: ServiceRelayOptions,
): (instance: Instance, service: ViewService, socket: Socket) => void {
  const { metrics, clock, audit } = options;
  return (instance, service, socket) => {
    socket.on('error', () => undefined);
    const refusal = refusalOf(instance, socket, clock);
    if (refusal) {
      metrics.refused(refusal);
      socket.resetAndDestroy();
      return;
    }
    instance.addSocket(socket);
    const tell = (status: number): void =>
      audit.request(instance, 'CONNECT', `service ${service.name}`, status, clock.monotonicMs());
    const fail = (status: number, reason: string): void => {
      if (socket.destroyed) return;
      metrics.refused('service');
      tell(status);
      audit.failed(instance, 'warn', 'service.failed', { service: service.name, reason });
      socket.resetAndDestroy();
    };
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    const asked = upgradeOverSocket({
      on: options.socketPath,
      path: `/v1/instances/${instance.view.uuid}/services/${service.name}`,
      headers: { host: 'noded', [SOURCE_PORT_HEADER]: String(socket.remotePort ?? 0) },
      idleTimeoutMs: OPEN_TIMEOUT_MS,
      signal: gone.signal,
    });
    asked.then(
      (upgraded) => {
        if (upgraded.kind === 'refused') {
          const { statusCode } = upgraded.answer;
          upgraded.answer.destroy();
          fail(statusCode ?? 502, `the node daemon answered ${statusCode}`);
        } else if (socket.destroyed) {
          // Also before the first byte: the service must not wait for a guest that disconnected.
          upgraded.socket.destroy();
        } else {
          tell(101);
          joinStreams(socket, upgraded.socket);
        }
      },
      (error: unknown) => fail(502, messageOf(error)),
    );
  };
}

function refusalOf(
  instance: Instance,
  socket: Socket,
  clock: Clock,
): 'source' | 'connections' | 'rate' | 'kept-out' | null {
  if (!hasOwnAddress(instance, socket.remoteAddress)) return 'source';
  if (instance.isKeptOut()) return 'kept-out';
  if (instance.sockets.size >= instance.view.limits.connections) return 'connections';
  return instance.takeRequest(clock.monotonicMs()) > 0 ? 'rate' : null;
}
