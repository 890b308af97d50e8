import type { Clock } from '#shared/clock/clock.ts';

/** A clock whose two times are set by the test. */
export class ManualClock implements Clock {
  #nowMs: number;

  constructor(nowMs = 1_000) {
    this.#nowMs = nowMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }
}
