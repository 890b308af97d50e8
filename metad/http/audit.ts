import { LineShare } from '#shared/bounds/line-share.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import type { Instance } from '../channel/instance.ts';
import {
  AUDIT_LINES_AT_ONCE,
  AUDIT_LINES_PER_SECOND,
  AUDIT_SHARE_LINES,
  AUDIT_SHARE_LINES_PER_SECOND,
} from '../config/limits.ts';

const MAX_PATH_LENGTH = 256;
const RATES = {
  rate: { perSecond: AUDIT_LINES_PER_SECOND, burst: AUDIT_LINES_AT_ONCE },
  share: { perSecond: AUDIT_SHARE_LINES_PER_SECOND, burst: AUDIT_SHARE_LINES },
};

/**
 * Logs one line per request. A guest decides how many requests there are, so each instance may fill
 * only a share of the log. Lines beyond it are counted.
 */
export class Audit {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #shares = new WeakMap<Instance, LineShare>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /**
   * @param path without its query, which may hold values
   * @param nowMs monotonic time
   */
  request(instance: Instance, method: string, path: string, status: number, nowMs: number): void {
    if (!this.#mayLog(instance, nowMs)) return;
    const cut = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path;
    this.#logger.info('http.request', { instance: instance.view.name, method, path: cut, status });
  }

  /**
   * Logs input that the parser refused before it became a request.
   * @param status of the answer; null when there was none
   * @param reason the parser's code, which contains no text from the guest
   */
  refused(instance: Instance, status: number | null, reason: string): void {
    if (!this.#mayLog(instance)) return;
    this.#logger.info('http.refused', { instance: instance.view.name, status, reason });
  }

  /** Logs a failure of an action that a guest requested. */
  failed(instance: Instance, level: 'warn' | 'error', event: string, fields: object): void {
    if (!this.#mayLog(instance)) return;
    this.#logger[level](event, { instance: instance.view.name, ...fields });
  }

  #mayLog(instance: Instance, nowMs = this.#clock.monotonicMs()): boolean {
    let share = this.#shares.get(instance);
    if (!share) this.#shares.set(instance, (share = new LineShare(RATES, nowMs)));
    const leftOut = share.take(nowMs);
    if (leftOut === null) return false;
    if (leftOut > 0)
      this.#logger.info('http.more', { instance: instance.view.name, requests: leftOut });
    return true;
  }
}
