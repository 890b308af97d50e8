import { every } from '#shared/clock/every.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { requireInstance } from './require-access.ts';
import type { Session } from './sessions.ts';

/** Delay in which a stream ends after its user has lost the instance. Requests end at once. */
const CHECK_MS = 5000;

export interface WatchedRights extends Disposable {
  /** Aborted with an AppError. */
  readonly signal: AbortSignal;
}

/**
 * Watches the rights of a stream. They end with its session and, for a bound user, when the
 * instance gets other tags or another name.
 * @param name null if the stream is not about one instance
 */
export function watchRights(
  { user, signal }: Session,
  name: string | null,
  instances: Pick<InstanceRepository, 'findByName'>,
): WatchedRights {
  if (user.scope === null || name === null) return { signal, [Symbol.dispose]: () => undefined };
  const lost = new AbortController();
  const checking = every(CHECK_MS, async () => {
    try {
      await requireInstance(user, name, instances);
    } catch (error) {
      // While the store is unavailable, the last answer stays valid.
      if (isAppError(error, 'INSTANCE_NOT_FOUND')) lost.abort(error);
    }
  });
  const both = AbortSignal.any([signal, lost.signal]);
  return { signal: both, [Symbol.dispose]: () => checking[Symbol.dispose]() };
}
