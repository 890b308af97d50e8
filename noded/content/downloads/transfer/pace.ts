export class TooSlowError extends Error {}

export interface PaceOptions {
  /** 0: any rate is enough. */
  readonly minBytesPerSecond: number;
  /** Waiting time over which the rate is measured. */
  readonly windowMs: number;
  readonly stop: (reason: TooSlowError) => void;
}

/**
 * Measures a server's rate over the time spent waiting for it, so that a slow local disk or reader
 * does not count.
 */
export class Pace {
  readonly #options: PaceOptions;
  #bytes = 0;
  #waitedMs = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Returns the next chunk. Rejects after `stop` was called. */
  async of(next: Promise<IteratorResult<Buffer, void>>): Promise<IteratorResult<Buffer, void>> {
    if (this.#options.minBytesPerSecond === 0) return next;
    let since = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const settle = (): void => {
      this.#waitedMs += performance.now() - since;
      since = performance.now();
    };
    const arm = (): void => {
      timer = setTimeout(
        () => {
          settle();
          if (this.#judge()) arm();
        },
        Math.max(1, this.#options.windowMs - this.#waitedMs),
      );
    };
    arm();
    try {
      const result = await next;
      if (!result.done) this.#bytes += result.value.length;
      return result;
    } finally {
      clearTimeout(timer);
      settle();
      this.#judge();
    }
  }

  /** @returns whether the rate suffices */
  #judge(): boolean {
    const { minBytesPerSecond, windowMs, stop } = this.#options;
    if (this.#waitedMs < windowMs) return true;
    const rate = (this.#bytes / this.#waitedMs) * 1000;
    const seconds = Math.round(this.#waitedMs / 1000);
    this.#bytes = 0;
    this.#waitedMs = 0;
    if (rate >= minBytesPerSecond) return true;
    stop(
      new TooSlowError(
        `the server sent ${Math.floor(rate)} bytes per second over ${seconds} s, below the limit of ${minBytesPerSecond}`,
      ),
    );
    return false;
  }
}
