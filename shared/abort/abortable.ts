import { toError } from '../errors/app-error.ts';

/**
 * A wait that an abort ends: it rejects with the signal's reason, which is passed on untouched.
 * @param start begins to wait, and answers with what has to be undone when the wait is aborted
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
  // What `start` began may have ended it in the same turn.
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Settles as the promise does, or rejects with the signal's reason when that comes first; the work
 * behind the promise goes on.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return abortable(signal, (resolve, reject) => {
    promise.then(resolve, reject);
    return () => undefined;
  });
}

/** Why a signal was aborted, as an error. */
export function abortReason(signal: AbortSignal): Error {
  return toError(signal.reason);
}
