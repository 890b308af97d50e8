import { LineShare, type LineRates } from '#shared/bounds/line-share.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';

/**
 * What explains a failure is in its first lines; who makes thousands wants to hide something else.
 */
const RATES: LineRates = {
  rate: { perSecond: 1, burst: 20 },
  share: { perSecond: 0.02, burst: 200 },
};
/**
 * Instances whose lines are counted; those that failed first are forgotten first. More than any
 * node has of them.
 */
const MAX_INSTANCES = 4096;

/**
 * Warnings about what guests asked for in vain, so many of each instance; what is left out is
 * counted in the next one.
 */
export class GuestFailures {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #shares = new Map<string, LineShare>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /**
   * @param uuid as the path of a request has it; all that are no instance's share what one may say
   */
  warn(uuid: string, event: string, fields: object): void {
    const nowMs = this.#clock.monotonicMs();
    const leftOut = this.#shareOf(uuid, nowMs).take(nowMs);
    if (leftOut === null) return;
    this.#logger.warn(event, { uuid, ...fields, ...(leftOut > 0 && { leftOut }) });
  }

  #shareOf(uuid: string, nowMs: number): LineShare {
    const known = this.#shares.get(uuid);
    if (known) return known;
    const [oldest] = this.#shares.keys();
    if (oldest !== undefined && this.#shares.size >= MAX_INSTANCES) this.#shares.delete(oldest);
    const share = new LineShare(RATES, nowMs);
    this.#shares.set(uuid, share);
    return share;
  }
}
