import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export interface Loaded<Value> {
  readonly value: ReadonlySignal<Value | undefined>;
  /** Why the last attempt failed. The earlier value stays. */
  readonly error: ReadonlySignal<unknown>;
  readonly reload: () => void;
}

/**
 * Loads a value, and again when a key changes.
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
  useEffect(() => {
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
  }, [...keys, count]);
  return {
    value,
    error,
    reload: () => {
      attempt.value += 1;
    },
  };
}
