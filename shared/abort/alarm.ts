/**
 * The longest delay of Node's timers, in milliseconds (24.8 days): a longer one would fire at once.
 */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls back once, after a delay of any length. Disposing of the result cancels the call. */
export function setAlarm(delayMs: number, ring: () => void): Disposable {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const nowMs = Math.min(leftMs, MAX_TIMER_MS);
    timer = setTimeout(() => {
      if (leftMs > nowMs) wait(leftMs - nowMs);
      else ring();
    }, nowMs);
  };
  wait(delayMs);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}
