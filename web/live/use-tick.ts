import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** Returns a number that increases at an interval while the browser shows the page. */
export function useTick(intervalMs: number): number {
  const tick = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') tick.value += 1;
    }, intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return tick.value;
}
