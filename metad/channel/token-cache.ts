import type { Clock } from '#shared/clock/clock.ts';
import { type Moment, momentOf, sinceMoment } from '#shared/clock/moment.ts';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';

/** Identity tokens of one instance that are kept, by request; the oldest is dropped first. */
const MAX_TOKENS = 16;
/** New identity tokens of one instance. Each is a signature and a line in a log of the node. */
const ISSUES = { burst: 32, perSecond: 0.5 };

interface KeptToken {
  readonly token: string;
  readonly issuedAt: Moment;
  readonly lifeMs: number;
}

/** Requests for credentials. Each command of a cloud's tools makes one. */
const CREDENTIALS = { burst: 64, perSecond: 5 };

/** The identity tokens of one instance. */
export class TokenCache {
  readonly #clock: Clock;
  #tokens = new Map<string, KeptToken>();
  #issues: TokenBucket | undefined;
  #credentials: TokenBucket | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns a token of which a third of the life remains; undefined without one. */
  find(request: string): string | undefined {
    const kept = this.#tokens.get(request);
    return kept !== undefined && this.#isFresh(kept) ? kept.token : undefined;
  }

  /** Charges for a new token. @returns 0, or the milliseconds until one may be issued */
  takeIssue(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#issues ??= new TokenBucket(ISSUES.burst, nowMs);
    return this.#issues.take(ISSUES, nowMs);
  }

  /** Charges for a request for credentials, as `takeIssue`. */
  takeCredentials(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#credentials ??= new TokenBucket(CREDENTIALS.burst, nowMs);
    return this.#credentials.take(CREDENTIALS, nowMs);
  }

  /**
   * Returns a function that keeps the issued token. It does nothing if the tokens were dropped
   * meanwhile.
   */
  expect(request: string, lifeS: number): (token: string) => void {
    const tokens = this.#tokens;
    // A slow answer shortens the use of the token, never prolongs it.
    const issuedAt = momentOf(this.#clock);
    return (token) => {
      tokens.delete(request);
      const [oldest] = tokens.keys();
      if (oldest !== undefined && tokens.size >= MAX_TOKENS) tokens.delete(oldest);
      tokens.set(request, { token, issuedAt, lifeMs: lifeS * 1000 });
    };
  }

  /** Drops all tokens, because their claims may have changed. */
  drop(): void {
    this.#tokens = new Map();
  }

  #isFresh({ issuedAt, lifeMs }: KeptToken): boolean {
    const { elapsedMs, wasSet } = sinceMoment(issuedAt, this.#clock);
    return !wasSet && elapsedMs < (lifeMs * 2) / 3;
  }
}
