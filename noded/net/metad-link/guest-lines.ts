import { LineShare, type LineRates } from '#shared/bounds/line-share.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';

/**
 * The first lines explain a failure. A guest with thousands of failures may want to hide another
 * event.
 */
const FAILURE_RATES: LineRates = {
  rate: { perSecond: 1, burst: 20 },
  share: { perSecond: 0.02, burst: 200 },
};
/** As metad's lines about requests. */
export const AUDIT_RATES: LineRates = {
  rate: { perSecond: 20, burst: 500 },
  share: { perSecond: 0.25, burst: 4000 },
};
/** Instances with a counter; the oldest counter is removed first. More than any node has. */
const MAX_INSTANCES = 4096;

/**
 * Logs lines about requests of guests, with a limit per instance. The next line counts the omitted
 * ones.
 */
export class GuestLines {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #rates: LineRates;
  readonly #shares = new Map<string, LineShare>();

  constructor(logger: Logger, clock: Clock, rates = FAILURE_RATES) {
    this.#logger = logger;
    this.#clock = clock;
    this.#rates = rates;
  }

  /** @param uuid from the path of a request; invalid ones share one limit */
  warn(uuid: string, event: string, fields: object): void {
    this.#write('warn', uuid, event, fields);
  }

  info(uuid: string, event: string, fields: object): void {
    this.#write('info', uuid, event, fields);
  }

  #write(level: 'info' | 'warn', uuid: string, event: string, fields: object): void {
    const nowMs = this.#clock.monotonicMs();
    const leftOut = this.#shareOf(uuid, nowMs).take(nowMs);
    if (leftOut === null) return;
    this.#logger[level](event, { uuid, ...fields, ...(leftOut > 0 && { leftOut }) });
  }

  #shareOf(uuid: string, nowMs: number): LineShare {
    const known = this.#shares.get(uuid);
    if (known) return known;
    const [oldest] = this.#shares.keys();
    if (oldest !== undefined && this.#shares.size >= MAX_INSTANCES) this.#shares.delete(oldest);
    const share = new LineShare(this.#rates, nowMs);
    this.#shares.set(uuid, share);
    return share;
  }
}
