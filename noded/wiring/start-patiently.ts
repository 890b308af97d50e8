import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';

/** A failover by Sentinel takes some ten seconds; systemd waits 90 s for the daemon. */
const STORE_PATIENCE_MS = 30_000;
const START_AGAIN_MS = 500;

/**
 * Repeats a start while the store is unavailable, for 30 s or until `stop` aborts. A failed start
 * must leave nothing behind.
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
      // If stopped meanwhile, throw the store's error.
      await sleep(START_AGAIN_MS, undefined, { signal: stop }).catch(() => Promise.reject(error));
    }
  }
}
