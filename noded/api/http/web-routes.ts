import type { webEndpoints } from '#shared/contract/endpoints.ts';
import type { Handlers } from './handlers.ts';
import type { Readable } from 'node:stream';

export interface WebRoutesDependencies {
  /**
   * Serves the web page on a port of 127.0.0.1 until the signal aborts.
   * @returns one WebLink per line
   * @throws AppError CONFLICT
   */
  readonly openWeb: (port: number, signal: AbortSignal) => Promise<Readable>;
}

export function webRoutes({ openWeb }: WebRoutesDependencies): Handlers<typeof webEndpoints> {
  return {
    'POST /v1/web': ({ body, signal }) => openWeb(body.port, signal),
  };
}
