import type { Socket } from 'node:dgram';
import type { Clock } from '#shared/clock/clock.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { hasOwnAddress } from '../channel/has-own-address.ts';
import type { Instance } from '../channel/instance.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';
import { answerQuery } from './dns-message.ts';

/** Clients of Google's metadata ask for this name. */
const NAMES: ReadonlyMap<string, string> = new Map([['metadata.google.internal', SERVICE_IPV4]]);

export interface NamesOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly metrics: GuestMetrics;
}

/** Answers the DNS queries of a guest. Each counts as one of its requests. */
export function serveNames(
  instance: Instance,
  socket: Socket,
  { clock, metrics }: NamesOptions,
): void {
  socket.on('message', (message, source) => {
    const isKeptOut = !hasOwnAddress(instance, source.address) || instance.isKeptOut();
    if (isKeptOut || instance.takeRequest(clock.monotonicMs()) > 0) {
      metrics.refused(isKeptOut ? 'source' : 'rate');
      return;
    }
    const answer = answerQuery(message, NAMES);
    if (answer === null) metrics.refused('datagram');
    // The guest repeats a query whose answer was lost.
    else socket.send(answer, source.port, source.address, () => undefined);
  });
}
