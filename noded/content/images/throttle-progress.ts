import type { Clock } from '#shared/clock/clock.ts';

const INTERVAL_MS = 100;

type Report = (doneBytes: number, totalBytes: number | null) => void;

/** Passes reports on, at most one in 100 ms, and always the last one. */
export function throttleProgress(clock: Clock, report: Report | undefined): Report {
  let last = Number.NEGATIVE_INFINITY;
  return (doneBytes, totalBytes) => {
    const now = clock.monotonicMs();
    if (doneBytes !== totalBytes && now - last < INTERVAL_MS) return;
    // The start does not delay the first bytes.
    if (doneBytes > 0) last = now;
    report?.(doneBytes, totalBytes);
  };
}
