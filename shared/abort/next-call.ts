/** Adds a one-shot listener. Resolves when it is called or the signal aborts. */
export async function nextCall(listeners: Set<() => void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onCall = (): void => resolve();
  listeners.add(onCall);
  signal.addEventListener('abort', onCall);
  try {
    await promise;
  } finally {
    listeners.delete(onCall);
    signal.removeEventListener('abort', onCall);
  }
}
