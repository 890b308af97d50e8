import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';

/** The node daemon creates the TAP and its address just before it sends the view. */
export const RETRY_LIMIT = 20;
const RETRY_INTERVAL_MS = 100;
/** Without `nodad` an IPv6 address stays tentative for a second or two after its link came up. */
export const V6_RETRY_LIMIT = 100;

/**
 * Retries while the device or the address is missing.
 * @throws AppError NETWORK_SETUP
 */
export async function whenReady<T>(
  device: string,
  signal: AbortSignal,
  limit: number,
  attempt: () => T,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return attempt();
    } catch (error) {
      const code = systemCodeOf(error);
      const isPending = code === 'ENODEV' || code === 'EADDRNOTAVAIL' || code === 'EADDRINUSE';
      if (!isPending || tries >= limit) {
        throw new AppError(
          'NETWORK_SETUP',
          `cannot listen on device ${device}: ${messageOf(error)}`,
          {
            details: { device, code: code ?? null },
            cause: error,
          },
        );
      }
      await sleep(RETRY_INTERVAL_MS, undefined, { signal });
    }
  }
}
