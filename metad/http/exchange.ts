import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Instance } from '../channel/instance.ts';
import type { GuardedHeaders } from './request-guard.ts';

export interface Exchange {
  readonly instance: Instance;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: GuardedHeaders;
  readonly query: URLSearchParams | null;
  /** The request has already waited for a change (parked-requests.ts) and is answered now. */
  readonly hasWaited?: boolean;
}

/**
 * Creates a signal that fires when the client disconnects or the time is over. Dispose it after the
 * wait.
 */
export function waitingSignal(
  response: ServerResponse,
  timeoutMs: number,
): { readonly signal: AbortSignal; isGone(): boolean; dispose(): void } {
  const controller = new AbortController();
  let isGone = response.destroyed;
  const onClose = (): void => {
    isGone = true;
    controller.abort();
  };
  response.on('close', onClose);
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  if (isGone) controller.abort();
  return {
    signal: controller.signal,
    isGone: () => isGone,
    dispose: () => {
      clearTimeout(timer);
      response.off('close', onClose);
    },
  };
}

/** @returns undefined when absent, null when it is not a whole number within the bounds */
export function queryInteger(
  query: URLSearchParams | null,
  name: string,
  max: number,
): number | undefined | null {
  const text = query?.get(name);
  if (text === undefined || text === null) return undefined;
  if (!/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return value <= max ? value : null;
}
