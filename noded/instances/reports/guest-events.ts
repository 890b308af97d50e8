import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { Logger } from '#shared/log/log.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Limits the early events of one guest; metad keeps no more either. */
const MAX_EARLY_BYTES = 4 * MIB;
/** Approximate size of an event without its text. */
const EVENT_BYTES = 512;

type Listener = (event: MetadEvent['event'], sequence: number) => void;

export interface EarlyListening {
  readonly handOver: (listener: Listener) => () => void;
  readonly stop: () => void;
}

/** Dispatches guests' events to subscribers, by instance. */
export function createGuestEvents() {
  const byInstance = new Map<string, Set<Listener>>();
  /** @returns a function that ends the subscription */
  const subscribe = (uuid: string, listener: Listener): (() => void) => {
    const listeners = byInstance.get(uuid) ?? new Set();
    byInstance.set(uuid, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) byInstance.delete(uuid);
    };
  };
  return {
    subscribe,
    /**
     * Keeps a guest's events until a listener takes them: a guest may report before the start of
     * its machine returns. Drops the oldest above the limit.
     * @returns `handOver` passes the events to a listener in order; `stop` drops them
     */
    listenEarly: (uuid: string): EarlyListening => {
      const early: Parameters<Listener>[] = [];
      let bytes = 0;
      const stop = subscribe(uuid, (...heard) => {
        early.push(heard);
        bytes += sizeOf(heard);
        while (bytes > MAX_EARLY_BYTES) {
          const oldest = early.shift();
          bytes -= oldest === undefined ? bytes : sizeOf(oldest);
        }
      });
      return {
        stop,
        handOver: (listener) => {
          stop();
          for (const heard of early) listener(...heard);
          return subscribe(uuid, listener);
        },
      };
    },
    dispatch: (event: MetadEvent): void => {
      for (const listener of byInstance.get(event.instance) ?? [])
        listener(event.event, event.sequence);
    },
  };
}

export type GuestEvents = ReturnType<typeof createGuestEvents>;

function sizeOf([event]: Parameters<Listener>): number {
  return EVENT_BYTES + JSON.stringify(event).length;
}

/** Dispatches metad's events until they end. */
export async function followGuests(
  events: AsyncIterable<MetadEvent>,
  guestEvents: GuestEvents,
  logger: Logger,
): Promise<void> {
  try {
    for await (const event of events) {
      try {
        guestEvents.dispatch(event);
      } catch (error) {
        // An error for one guest must not stop the events of the others.
        logger.error('event.not-taken', { instance: event.instance, err: error });
      }
    }
  } catch (error) {
    logger.error('events.ended', { err: error });
  }
}
