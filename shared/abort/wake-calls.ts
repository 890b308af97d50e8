import { nextCall } from './next-call.ts';

/** Who waits for the next thing that happens to something, by its key. */
export class WakeCalls {
  readonly #waiting = new Map<string, Set<() => void>>();

  wake(key: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake();
  }

  /** Resolves with the next wake of that key, or when the signal says so. */
  async next(key: string, signal: AbortSignal): Promise<void> {
    const wakes = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, wakes);
    await nextCall(wakes, signal);
    // Who was woken before may have left it already, and somebody else waits in a new one.
    if (wakes.size === 0 && this.#waiting.get(key) === wakes) this.#waiting.delete(key);
  }
}
