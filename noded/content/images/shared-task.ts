import { abortable, abortReason } from '#shared/abort/abortable.ts';
import { toError } from '#shared/errors/app-error.ts';

/** One piece of work for whoever waits for it; it is aborted when nobody does any more. */
export interface SharedTask<T, Event> {
  /** @throws what the work throws, or the reason of the caller's signal */
  join(options: { signal: AbortSignal; onEvent: (event: Event) => void }): Promise<T>;
  /** Everybody has left it: nobody may join any more. */
  readonly isAborted: boolean;
  abort(reason: Error): void;
  /** Fulfilled when the work has ended, however it did. */
  readonly ended: Promise<void>;
}

/**
 * @param work runs once. `settle` is called in the same turn in which it succeeds, with the number
 * of those who get its result:
 *   each of them has it, whatever happens to their signals afterwards.
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
