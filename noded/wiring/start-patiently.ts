import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';

/** Sentinels take some ten seconds for a failover; systemd waits 90 for the daemon. */
const STORE_PATIENCE_MS = 30_000;
const START_AGAIN_MS = 500;

/**
 * Starts again what its store kept from starting, for half a minute, or until it is to stop. A
 * start that fails has to leave nothing.
 */
export async function startPatiently<T>(
  start: () => Promise<T>,
  {
    stop,
    clock,
    logger,
  }: { readonly stop: AbortSignal; readonly clock: Clock; readonly logger: Logger },
): Promise<T> {
  const givesUpAtMs = clock.monotonicMs() + STORE_PATIENCE_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const isOver = stop.aborted || clock.monotonicMs() > givesUpAtMs;
      if (isOver || !isAppError(error, 'STORE_UNAVAILABLE')) throw error;
      logger.warn('node.waits-for-store', { err: error });
      // Told to stop, it still says what kept it.
      await sleep(START_AGAIN_MS, undefined, { signal: stop }).catch(() => Promise.reject(error));
    }
  }
}
