import { FIRST_EXCLUSION_MS, FORGIVEN_AFTER_MS, MAX_EXCLUSION_MS } from '../config/limits.ts';

/**
 * Time without new connections for a guest that exceeded its limits. It doubles each time until the
 * guest has behaved for a while. An offence during the exclusion does not count again, so that one
 * burst is one offence.
 */
export class Exclusion {
  #untilMs = -Infinity;
  #lengthMs = FIRST_EXCLUSION_MS;

  /** @param nowMs monotonic time, here as below */
  isActive(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  begin(nowMs: number): void {
    if (this.isActive(nowMs)) return;
    const isForgiven = nowMs - this.#untilMs > FORGIVEN_AFTER_MS;
    this.#lengthMs = isForgiven
      ? FIRST_EXCLUSION_MS
      : Math.min(this.#lengthMs * 2, MAX_EXCLUSION_MS);
    this.#untilMs = nowMs + this.#lengthMs;
  }
}
