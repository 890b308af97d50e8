import { signal } from '@preact/signals';

/** A short look at another tab costs no new connection. */
const KEEP_MS = 10_000;

/**
 * Whether this tab is in view, or was a moment ago. Browsers share six HTTP/1.1 connections to a
 * host between all tabs. So only tabs in view keep their streams open; others catch up later.
 */
export const isShown = signal(true);

export function watchVisibility(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (!document.hidden) isShown.value = true;
    else timer = setTimeout(() => (isShown.value = false), KEEP_MS);
  });
}
