import { TokenBucket } from './token-bucket.ts';
import type { BucketRate } from './token-bucket.ts';

/**
 * Limits of one party's lines in a common log. The party decides how much it does, so its lines
 * count twice: against a rate, which protects readers, and against a share, which keeps the lines
 * of others in a log of bounded size.
 */
export interface LineRates {
  readonly rate: BucketRate;
  readonly share: BucketRate;
}

export class LineShare {
  readonly #rates: LineRates;
  readonly #rate: TokenBucket;
  readonly #share: TokenBucket;
  #leftOut = 0;

  constructor(rates: LineRates, nowMs: number) {
    this.#rates = rates;
    this.#rate = new TokenBucket(rates.rate.burst, nowMs);
    this.#share = new TokenBucket(rates.share.burst, nowMs);
  }

  /**
   * Asks for one line.
   * @param nowMs monotonic time
   * @returns the number of lines omitted since the last one; null when this one is omitted too
   */
  take(nowMs: number): number | null {
    const { rate, share } = this.#rates;
    if (this.#rate.take(rate, nowMs) > 0 || this.#share.take(share, nowMs) > 0) {
      this.#leftOut++;
      return null;
    }
    const leftOut = this.#leftOut;
    this.#leftOut = 0;
    return leftOut;
  }
}
