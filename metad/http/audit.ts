import type { Logger } from '#shared/log/log.ts';
import type { Instance } from '../channel/instance.ts';
import { TokenBucket } from '../channel/token-bucket.ts';
import { AUDIT_LINES_AT_ONCE, AUDIT_LINES_PER_SECOND } from '../limits.ts';

const MAX_PATH_LENGTH = 256;
const RATE = { perSecond: AUDIT_LINES_PER_SECOND, burst: AUDIT_LINES_AT_ONCE };

interface Allowance {
  readonly bucket: TokenBucket;
  suppressed: number;
}

/**
 * Takes note of one request.
 * @param path without its query, which may hold values
 * @param nowMs monotonic time
 */
export type Audit = (
  instance: Instance,
  method: string,
  path: string,
  status: number,
  nowMs: number,
) => void;

/**
 * Who asked for what and how it ended, one line a request. A guest decides how many there are, so an instance may fill only so
 * much of the log; what is left out is counted.
 */
export function createAudit(logger: Logger): Audit {
  const allowances = new WeakMap<Instance, Allowance>();
  return (instance, method, path, status, nowMs) => {
    let allowance = allowances.get(instance);
    if (!allowance) {
      allowance = { bucket: new TokenBucket(RATE.burst, nowMs), suppressed: 0 };
      allowances.set(instance, allowance);
    }
    if (allowance.bucket.take(RATE, nowMs) > 0) {
      allowance.suppressed++;
      return;
    }
    const { name } = instance.view;
    if (allowance.suppressed > 0) {
      logger.info('http.more', { instance: name, requests: allowance.suppressed });
      allowance.suppressed = 0;
    }
    const cut = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path;
    logger.info('http.request', { instance: name, method, path: cut, status });
  };
}
