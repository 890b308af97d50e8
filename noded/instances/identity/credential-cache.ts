import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { toError } from '#shared/errors/app-error.ts';
import { type Moment, momentOf, sinceMoment } from '#shared/clock/moment.ts';

/** Entries that are kept; the oldest is dropped first. More than a node has instances. */
const MAX_ENTRIES = 8192;
/**
 * SDKs of AWS ask for new credentials up to 15 minutes before the old ones expire. Credentials that
 * live for an hour or longer are renewed earlier than that.
 */
const RENEWAL_MS = 20 * 60_000;
/** Credentials with less time are not served: a request that uses them may take a while. */
export const MIN_REST_MS = 60_000;
/** Wait for new credentials while the old ones are valid. botocore waits one second. */
const RENEWAL_PATIENCE_MS = 700;
/** A failure is repeated for this time without a new exchange. */
const FAILURE_MS = 10_000;
/** Exchanges of all instances at once. Each has a connection, and a deadline. */
const MAX_EXCHANGES = 256;

export interface Expiring {
  readonly expiresAtMs: number;
}

/** A failed exchange. The message is for the log of the node. */
export class ExchangeFailure extends Error {
  /** Error code of the service if it refused the request; null if it cannot be used. */
  readonly refusal: string | null;

  constructor(message: string, refusal: string | null = null, cause?: unknown) {
    super(message, { cause });
    this.refusal = refusal;
  }
}

interface Kept<Value> {
  readonly value: Value;
  readonly since: Moment;
  readonly lifeMs: number;
}

interface Entry<Value> {
  /** Everything on which the credentials depend. */
  readonly source: string;
  kept?: Kept<Value>;
  failed?: { readonly error: Error; readonly sinceMs: number };
  /** Never rejects. */
  exchange?: Promise<void> | undefined;
}

/**
 * Keeps temporary credentials in memory, and renews them before they expire. Concurrent requests
 * share one exchange. While the service fails, the former credentials are served until they expire.
 */
export class CredentialCache<Value extends Expiring> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<Value>>();
  #exchanges = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param source credentials of another source are dropped
   * @throws the error of the exchange
   */
  async get(key: string, source: string, exchange: () => Promise<Value>): Promise<Value> {
    const entry = this.#entryOf(key, source);
    const state = this.#stateOf(entry.kept);
    if (entry.kept !== undefined && state === 'fresh') return entry.kept.value;
    const renewal = this.#exchange(entry, exchange);
    if (state === 'usable') {
      await Promise.race([renewal, sleep(RENEWAL_PATIENCE_MS, undefined, { ref: false })]);
    } else await renewal;
    if (entry.kept !== undefined && this.#stateOf(entry.kept) !== 'expired')
      return entry.kept.value;
    throw entry.failed?.error ?? new ExchangeFailure('too many exchanges at once');
  }

  #entryOf(key: string, source: string): Entry<Value> {
    const known = this.#entries.get(key);
    if (known?.source === source) return known;
    const entry = { source };
    this.#entries.delete(key);
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined && this.#entries.size >= MAX_ENTRIES) this.#entries.delete(oldest);
    this.#entries.set(key, entry);
    return entry;
  }

  #exchange(entry: Entry<Value>, exchange: () => Promise<Value>): Promise<void> | undefined {
    if (entry.exchange !== undefined) return entry.exchange;
    const nowMs = this.#clock.monotonicMs();
    if (entry.failed !== undefined && nowMs - entry.failed.sinceMs < FAILURE_MS) return undefined;
    if (this.#exchanges >= MAX_EXCHANGES) return undefined;
    entry.exchange = this.#run(entry, exchange).finally(() => (entry.exchange = undefined));
    return entry.exchange;
  }

  async #run(entry: Entry<Value>, exchange: () => Promise<Value>): Promise<void> {
    this.#exchanges++;
    // A slow answer shortens the use of the credentials, never prolongs it.
    const since = momentOf(this.#clock);
    try {
      const value = await exchange();
      entry.kept = { value, since, lifeMs: value.expiresAtMs - since.wallMs };
      delete entry.failed;
    } catch (error) {
      entry.failed = { error: toError(error), sinceMs: this.#clock.monotonicMs() };
    } finally {
      this.#exchanges--;
    }
  }

  #stateOf(kept: Kept<Value> | undefined): 'fresh' | 'usable' | 'expired' {
    if (kept === undefined) return 'expired';
    const { elapsedMs, wasSet } = sinceMoment(kept.since, this.#clock);
    const restMs = kept.lifeMs - elapsedMs;
    if (restMs < MIN_REST_MS) return 'expired';
    return !wasSet && restMs > Math.min(RENEWAL_MS, kept.lifeMs / 2) ? 'fresh' : 'usable';
  }
}
