import { toError } from '../errors/app-error.ts';

/**
 * Waits for `start`, or rejects with the signal's unchanged reason.
 * @param start begins the wait, and returns a function that undoes it on abort
 */
export async function abortable<T>(
  signal: AbortSignal,
  start: (resolve: (value: T) => void, reject: (reason: Error) => void) => () => void,
): Promise<T> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const leave = start(resolve, reject);
  const onAbort = (): void => {
    leave();
    reject(abortReason(signal));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // `start` may have aborted the signal in the same turn.
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Settles as the promise does, or rejects with the signal's reason if that comes first. The work
 * behind the promise continues.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return abortable(signal, (resolve, reject) => {
    promise.then(resolve, reject);
    return () => undefined;
  });
}

export function abortReason(signal: AbortSignal): Error {
  return toError(signal.reason);
}
