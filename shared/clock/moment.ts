import type { Clock } from './clock.ts';

/** A longer difference of the two clocks means that the wall clock was set. */
const MAX_CLOCK_DRIFT_MS = 2000;

/** A moment by both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.now(), monotonicMs: clock.monotonicMs() };
}

/**
 * Returns the time since a moment, by the clock that shows more: others judge by the wall clock,
 * which may be set, and the monotonic clock stops while the host sleeps.
 */
export function sinceMoment(
  { wallMs, monotonicMs }: Moment,
  clock: Clock,
): { readonly elapsedMs: number; readonly wasSet: boolean } {
  const wall = clock.now() - wallMs;
  const monotonic = clock.monotonicMs() - monotonicMs;
  return {
    elapsedMs: Math.max(wall, monotonic),
    wasSet: Math.abs(wall - monotonic) > MAX_CLOCK_DRIFT_MS,
  };
}
