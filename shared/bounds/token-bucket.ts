/** A rate limit: `burst` at once, then `perSecond`. */
export interface BucketRate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket. Its rate may change with every call, since it comes with the view. */
export class TokenBucket {
  #tokens: number;
  #updatedAtMs: number;

  constructor(burst: number, nowMs: number) {
    this.#tokens = burst;
    this.#updatedAtMs = nowMs;
  }

  /**
   * @param cost number of tokens; beyond the burst it becomes a debt
   * @returns 0 when the event may happen now, else the milliseconds until it may
   */
  take(rate: BucketRate, nowMs: number, cost = 1): number {
    const elapsedS = Math.max(0, nowMs - this.#updatedAtMs) / 1000;
    this.#tokens = Math.min(rate.burst, this.#tokens + elapsedS * rate.perSecond);
    this.#updatedAtMs = nowMs;
    if (this.#tokens >= 1) {
      this.#tokens -= cost;
      return 0;
    }
    return ((1 - this.#tokens) / rate.perSecond) * 1000;
  }

  /** Charges for an event that happened already, even into debt. */
  owe(rate: BucketRate, nowMs: number, cost: number): void {
    this.take(rate, nowMs, 0);
    this.#tokens -= cost;
  }
}
