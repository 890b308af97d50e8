import { setAlarm } from './alarm.ts';

/** A time limit on a piece of work. Disposing of it, when the work has ended, takes the limit away. */
export interface Deadline extends Disposable {
  /** Aborted with the reason when the time is over, and with the work's own signal. */
  readonly signal: AbortSignal;
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
  const alarm = timeoutMs === null ? null : setAlarm(timeoutMs, () => controller.abort(reason()));
  return {
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    [Symbol.dispose]: () => alarm?.[Symbol.dispose](),
  };
}
