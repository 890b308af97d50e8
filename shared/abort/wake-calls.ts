/** Who waits for the next thing that happens to something, by its key. */
export class WakeCalls {
  readonly #waiting = new Map<string, Set<() => void>>();

  wake(key: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake();
  }

  /** Resolves with the next wake of that key, or when the signal says so. */
  async next(key: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    const wakes = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, wakes);
    wakes.add(resolve);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) resolve();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      wakes.delete(resolve);
      if (wakes.size === 0) this.#waiting.delete(key);
    }
  }
}
