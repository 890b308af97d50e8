import type { Logger } from '#shared/log/log.ts';
import type { Instance } from '../channel/instance.ts';
import { TokenBucket } from '../channel/token-bucket.ts';
import { AUDIT_LINES_AT_ONCE, AUDIT_LINES_PER_SECOND } from '../config/limits.ts';

const MAX_PATH_LENGTH = 256;
const RATE = { perSecond: AUDIT_LINES_PER_SECOND, burst: AUDIT_LINES_AT_ONCE };

interface Allowance {
  readonly bucket: TokenBucket;
  suppressed: number;
}

export interface Audit {
  /**
   * Takes note of one request.
   * @param path without its query, which may hold values
   * @param nowMs monotonic time
   */
  request(instance: Instance, method: string, path: string, status: number, nowMs: number): void;
  /**
   * Takes note of something that never became a request.
   * @param status of the answer; null when there was none
   * @param reason the parser's code, which holds nothing that the guest sent
   */
  refused(instance: Instance, status: number | null, reason: string, nowMs: number): void;
}

/**
 * Who asked for what and how it ended, one line a request. A guest decides how many there are, so an instance may fill only so
 * much of the log; what is left out is counted.
 */
export function createAudit(logger: Logger): Audit {
  const allowances = new WeakMap<Instance, Allowance>();
  const mayTell = (instance: Instance, nowMs: number): boolean => {
    let allowance = allowances.get(instance);
    if (!allowance) {
      allowance = { bucket: new TokenBucket(RATE.burst, nowMs), suppressed: 0 };
      allowances.set(instance, allowance);
    }
    if (allowance.bucket.take(RATE, nowMs) > 0) {
      allowance.suppressed++;
      return false;
    }
    if (allowance.suppressed > 0) {
      logger.info('http.more', { instance: instance.view.name, requests: allowance.suppressed });
      allowance.suppressed = 0;
    }
    return true;
  };
  return {
    request: (instance, method, path, status, nowMs) => {
      if (!mayTell(instance, nowMs)) return;
      const cut = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path;
      logger.info('http.request', { instance: instance.view.name, method, path: cut, status });
    },
    refused: (instance, status, reason, nowMs) => {
      if (!mayTell(instance, nowMs)) return;
      logger.info('http.refused', { instance: instance.view.name, status, reason });
    },
  };
}
