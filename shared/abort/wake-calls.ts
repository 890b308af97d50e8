import { nextCall } from './next-call.ts';

/** Waits for events, by key. */
export class WakeCalls {
  readonly #waiting = new Map<string, Set<() => void>>();

  wake(key: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake();
  }

  /** Resolves with the next wake of that key, or when the signal aborts. */
  async next(key: string, signal: AbortSignal): Promise<void> {
    const wakes = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, wakes);
    await nextCall(wakes, signal);
    // The set may have been removed before, and replaced by a new one with other waiters.
    if (wakes.size === 0 && this.#waiting.get(key) === wakes) this.#waiting.delete(key);
  }
}
