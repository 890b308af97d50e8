import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../clock/clock.ts';

/**
 * Looks again after every interval until a condition holds.
 * @returns whether it holds within the limit
 * @throws the signal's unchanged reason
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  {
    everyMs,
    limitMs = Infinity,
    signal,
    clock = systemClock,
  }: {
    readonly everyMs: number;
    readonly limitMs?: number;
    readonly signal?: AbortSignal | undefined;
    readonly clock?: Pick<Clock, 'monotonicMs'>;
  },
): Promise<boolean> {
  const endMs = clock.monotonicMs() + limitMs;
  while (!(await holds())) {
    signal?.throwIfAborted();
    if (clock.monotonicMs() > endMs) return false;
    await pause(everyMs, signal);
  }
  return true;
}

/**
 * Waits. Ends early, without an error, when the signal aborts.
 * @param ref whether the wait keeps the process running
 * @returns whether the whole time has passed
 */
export async function pause(
  ms: number,
  signal: AbortSignal | undefined,
  { ref = true }: { readonly ref?: boolean } = {},
): Promise<boolean> {
  return await sleep(ms, true, { ref, ...(signal && { signal }) }).catch(() => false);
}
