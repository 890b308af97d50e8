import { setAlarm } from './alarm.ts';

/** A time limit on a piece of work. Dispose of it when the work has ended. */
export interface Deadline extends Disposable {
  /** Aborts with the reason when the time is over, and with the work's own signal. */
  readonly signal: AbortSignal;
  /** Stops the clock during a wait for other work. */
  pausedDuring<T>(wait: () => Promise<T>): Promise<T>;
}

/**
 * @param signal that ends the work for other reasons
 * @param timeoutMs of any length; null for no limit
 */
export function startDeadline(
  signal: AbortSignal | undefined,
  timeoutMs: number | null,
  reason: () => Error,
): Deadline {
  const controller = new AbortController();
  let leftMs = timeoutMs ?? 0;
  let since = performance.now();
  let alarm: Disposable | null = null;
  const start = (): void => {
    since = performance.now();
    if (timeoutMs !== null) alarm = setAlarm(leftMs, () => controller.abort(reason()));
  };
  start();
  return {
    pausedDuring: async (wait) => {
      alarm?.[Symbol.dispose]();
      leftMs = Math.max(0, leftMs - (performance.now() - since));
      try {
        return await wait();
      } finally {
        start();
      }
    },
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    [Symbol.dispose]: () => alarm?.[Symbol.dispose](),
  };
}
