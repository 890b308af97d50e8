import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { returns } from './cluster.ts';
import { session } from './session.ts';

export interface Loaded<Value> {
  readonly value: ReadonlySignal<Value | undefined>;
  /** Why the last attempt failed. The earlier value stays. */
  readonly error: ReadonlySignal<unknown>;
  readonly reload: () => void;
}

/**
 * Loads a value, and again when a key changes, a user logs in or a lost node answers again.
 * @param keys values that the result depends on
 */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value | undefined>,
  keys: readonly unknown[],
): Loaded<Value> {
  const value = useSignal<Value | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const attempt = useSignal(0);
  const count = attempt.value;
  const login = session.value?.csrf;
  useEffect(() => {
    if (login === undefined) return;
    const stop = new AbortController();
    load(stop.signal).then(
      (loaded) => {
        if (stop.signal.aborted) return;
        value.value = loaded;
        error.value = undefined;
      },
      (reason: unknown) => {
        if (!stop.signal.aborted) error.value = reason;
      },
    );
    return () => stop.abort();
  }, [...keys, count, login, returns.value]);
  return {
    value,
    error,
    reload: () => {
      attempt.value += 1;
    },
  };
}
