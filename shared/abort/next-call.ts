/**
 * Resolves when what is put among the listeners is called, or when the signal says so; then it is
 * none of them any more.
 */
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
