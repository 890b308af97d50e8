import type { Clock } from '#shared/clock/clock.ts';
import { networkOf } from '#shared/socket/network-of.ts';

/**
 * Failed logins per network and window before further attempts are refused. People mistype less
 * often.
 */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Limits the networks in memory; the oldest are dropped first. */
const MAX_ADDRESSES = 10_000;

interface Failures {
  count: number;
  readonly sinceMs: number;
}

/** Slows down guesses of passwords. */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the seconds until the address may try again; 0 if it may now. */
  waitS(address: string): number {
    const failures = this.#current(networkOf(address));
    if (failures === undefined || failures.count < MAX_FAILURES) return 0;
    return Math.ceil((failures.sinceMs + WINDOW_MS - this.#clock.monotonicMs()) / 1000);
  }

  failed(address: string): void {
    const network = networkOf(address);
    const failures = this.#current(network);
    if (failures !== undefined) {
      failures.count += 1;
      return;
    }
    this.#failures.delete(network);
    this.#failures.set(network, { count: 1, sinceMs: this.#clock.monotonicMs() });
    if (this.#failures.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#failures.keys()) {
      this.#failures.delete(oldest);
      break;
    }
  }

  #current(network: string): Failures | undefined {
    const failures = this.#failures.get(network);
    if (failures === undefined) return undefined;
    return this.#clock.monotonicMs() - failures.sinceMs < WINDOW_MS ? failures : undefined;
  }
}
