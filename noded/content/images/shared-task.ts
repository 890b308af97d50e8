import { abortable, abortReason } from '#shared/abort/abortable.ts';
import { toError } from '#shared/errors/app-error.ts';

/** Work that several callers wait for. It is aborted when the last of them leaves. */
export interface SharedTask<T, Event> {
  /** @throws errors of the work, or the reason of the caller's signal */
  join(options: { signal: AbortSignal; onEvent: (event: Event) => void }): Promise<T>;
  /** True when all callers have left; `join` is not allowed then. */
  readonly isAborted: boolean;
  abort(reason: Error): void;
  readonly ended: Promise<void>;
}

/**
 * @param work runs once
 * @param settle called with the number of waiting callers in the same turn in which the work
 * succeeds: each of them receives the result, even if its signal aborts afterwards
 */
export function startSharedTask<T, Event>(
  work: (signal: AbortSignal, emit: (event: Event) => void) => Promise<T>,
  settle: (result: T, waiters: number) => void,
): SharedTask<T, Event> {
  const controller = new AbortController();
  const waiters = new Map<
    symbol,
    { finish: (outcome: PromiseSettledResult<T>) => void; onEvent: (event: Event) => void }
  >();
  const emit = (event: Event): void => {
    for (const { onEvent } of waiters.values()) onEvent(event);
  };
  const finishAll = (outcome: PromiseSettledResult<T>): void => {
    const all = [...waiters.values()];
    waiters.clear();
    for (const { finish } of all) finish(outcome);
  };
  const start = (): void => {
    work(controller.signal, emit)
      .then(
        (value) => {
          settle(value, waiters.size);
          finishAll({ status: 'fulfilled', value });
        },
        (reason: unknown) => finishAll({ status: 'rejected', reason }),
      )
      .finally(() => end.resolve())
      .catch(toError);
  };
  const end = Promise.withResolvers<void>();
  let hasStarted = false;
  return {
    get isAborted() {
      return controller.signal.aborted;
    },
    ended: end.promise,
    abort: (reason) => controller.abort(reason),
    join({ signal, onEvent }) {
      return abortable<T>(signal, (resolve, reject) => {
        const id = Symbol('waiter');
        const finish = (outcome: PromiseSettledResult<T>): void => {
          if (outcome.status === 'fulfilled') resolve(outcome.value);
          else reject(toError(outcome.reason));
        };
        waiters.set(id, { finish, onEvent });
        if (!hasStarted) {
          hasStarted = true;
          start();
        }
        return () => {
          waiters.delete(id);
          if (waiters.size === 0) controller.abort(abortReason(signal));
        };
      });
    },
  };
}
