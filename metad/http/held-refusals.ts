import type { ServerResponse } from 'node:http';
import type { Clock } from '#shared/clock/clock.ts';
import type { Instance } from '../channel/instance.ts';
import {
  MAX_BODY_BYTES,
  MAX_REFUSED_BODIES,
  REFUSALS_AT_ONCE,
  REFUSAL_DELAY_MS,
} from '../config/limits.ts';
import { hasUnreadBody, sendText } from './reply.ts';

interface Held {
  readonly response: ServerResponse;
  readonly delayMs: number;
  readonly dueAtMs: number;
}

/**
 * Delays answers with status 429: the delay is the price of too many requests, and bounds the cost
 * of refusals to other guests. The limit on outstanding requests bounds the number of held answers.
 * One timer serves all of them.
 */
export class HeldRefusals {
  readonly #clock: Clock;
  /** Refusals in the order in which they are due. */
  readonly #held: Held[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param delayMs until the guest may send requests again
   * @returns false when the request cannot be answered: too many refused bodies, or a longer body
   * than any that is accepted
   */
  hold(instance: Instance, response: ServerResponse, delayMs: number): boolean {
    const { req: request } = response;
    if (hasUnreadBody(request)) {
      const isLong = Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES;
      if (isLong || instance.refusedBodies >= MAX_REFUSED_BODIES) return false;
      instance.refusedBodies++;
      response.on('close', () => instance.refusedBodies--);
      // The body is dropped as it arrives. A chunked one may never end, so it stays unread until
      // the answer, which then drops a few pieces of it and closes the connection.
      if (request.headers['transfer-encoding'] === undefined) request.resume();
    }
    const dueAtMs = this.#clock.monotonicMs() + REFUSAL_DELAY_MS;
    if (this.#held.push({ response, delayMs, dueAtMs }) === 1) this.#schedule(REFUSAL_DELAY_MS);
    return true;
  }

  #schedule(delayMs: number): void {
    setTimeout(() => this.#release(), delayMs);
  }

  #release(): void {
    const nowMs = this.#clock.monotonicMs();
    for (let count = 0; count < REFUSALS_AT_ONCE; count++) {
      const held = this.#held[0];
      if (!held || held.dueAtMs > nowMs) break;
      this.#held.shift();
      if (!held.response.destroyed) refuseForRate(held.response, held.delayMs);
    }
    const next = this.#held[0];
    if (next) this.#schedule(Math.max(1, next.dueAtMs - nowMs));
  }
}

export function refuseForRate(
  response: ServerResponse,
  delayMs: number,
  headers: readonly string[] = [],
): void {
  const retryAfterS = Math.max(1, Math.ceil(delayMs / 1000));
  sendText(response, 429, 'too many requests', ['Retry-After', String(retryAfterS), ...headers]);
}
