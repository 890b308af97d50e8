import { every } from '#shared/clock/every.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { JobRepository } from './job-repository.ts';

const HOUR_MS = 3_600_000;
/** Age up to which ended jobs are kept, by default. */
const MAX_AGE_MS = 90 * 24 * HOUR_MS;
const EVERY_MS = 6 * HOUR_MS;

export interface ForgetOldJobsDependencies {
  readonly jobs: Pick<JobRepository, 'forgetOlder'>;
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string | undefined) => boolean;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  readonly everyMs?: number;
}

/**
 * Forgets old jobs now and every six hours. On a quiet cluster, the limits by number alone would
 * keep users' actions for years.
 */
export function forgetOldJobs(dependencies: ForgetOldJobsDependencies): Disposable {
  const { jobs, owns, logger, clock, everyMs = EVERY_MS } = dependencies;
  const forget = async (): Promise<void> => {
    try {
      const count = await jobs.forgetOlder(clock.now() - MAX_AGE_MS, owns);
      if (count > 0) logger.info('jobs.forgotten', { jobs: count });
    } catch (error) {
      // The store may be unavailable; the next run tries again.
      logger.warn('jobs.not-forgotten', { reason: messageOf(error) });
    }
  };
  return every(everyMs, forget, { startsNow: true });
}
