import type { Clock } from '#shared/clock/clock.ts';

/** Wrong passwords from one address within a window; more are not looked at. A person mistypes less often. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Addresses that are remembered; the oldest go first. */
const MAX_ADDRESSES = 10_000;

interface Failures {
  count: number;
  readonly sinceMs: number;
}

/** Slows down who guesses passwords. */
export class LoginLimit {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Seconds until the address may try again; 0 when it may. */
  waitS(address: string): number {
    const failures = this.#current(address);
    if (failures === undefined || failures.count < MAX_FAILURES) return 0;
    return Math.ceil((failures.sinceMs + WINDOW_MS - this.#clock.monotonicMs()) / 1000);
  }

  failed(address: string): void {
    const failures = this.#current(address);
    if (failures !== undefined) {
      failures.count += 1;
      return;
    }
    this.#failures.delete(address);
    this.#failures.set(address, { count: 1, sinceMs: this.#clock.monotonicMs() });
    if (this.#failures.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#failures.keys()) {
      this.#failures.delete(oldest);
      break;
    }
  }

  #current(address: string): Failures | undefined {
    const failures = this.#failures.get(address);
    if (failures === undefined) return undefined;
    return this.#clock.monotonicMs() - failures.sinceMs < WINDOW_MS ? failures : undefined;
  }
}
