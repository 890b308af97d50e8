import { isIPv6 } from 'node:net';
import type { Clock } from '#shared/clock/clock.ts';

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

/**
 * Returns the network of an address: an IPv4 address, or an IPv6 /64. A host with one IPv6 address
 * usually has its whole network of 2⁶⁴.
 */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  // A trailing IPv4 address counts as two groups.
  const given = left.length + right.length + (plain.includes('.') ? 1 : 0);
  const groups = [
    ...left,
    ...Array<string>(tail === undefined ? 0 : 8 - given).fill('0'),
    ...right,
  ];
  return `${groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/64`;
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
