import { z } from 'zod';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import type { JobRepository } from '../jobs/job-repository.ts';

export const QUOTA_CLAIMS = 'quota-claims';
/** One record for all users: tags let several users count the same instance. */
const ALL = 'all';

const quotaClaim = z.strictObject({
  name: z.string(),
  tags: z.array(z.string()),
  memoryMiB: z.number(),
  vcpus: z.number(),
  diskBytes: z.number(),
});
export type QuotaClaim = Readonly<z.infer<typeof quotaClaim>>;

const quotaClaims = z.array(quotaClaim.extend({ job: z.number() }));

/** Stores claims of unfinished jobs in the whole cluster. */
export interface QuotaClaims {
  /**
   * Claims for a job until the job has ended, unless the judge refuses. Judges again if another job
   * claimed meanwhile, so that of two jobs at once one sees the other.
   * @param judge throws to refuse; gets the claims of the other unfinished jobs, and must read the
   * instances itself: a job that ended before the call is in their records
   */
  claim(
    job: number,
    planned: QuotaClaim,
    judge: (others: readonly QuotaClaim[]) => Promise<void>,
  ): Promise<void>;
}

export function createQuotaClaims(
  store: Pick<Store, 'get' | 'commit'>,
  jobs: Pick<JobRepository, 'load'>,
): QuotaClaims {
  const hasEnded = async (id: number): Promise<boolean> => {
    try {
      const job = await jobs.load(id);
      return job === undefined || job.endedAtMs !== null;
    } catch (error) {
      if (isAppError(error, 'RECORD_UNREADABLE')) return true;
      throw error;
    }
  };
  return {
    claim: async (job, planned, judge) => {
      for (;;) {
        const stored = await store.get(QUOTA_CLAIMS, ALL);
        const all = stored === undefined ? [] : parseRecord(quotaClaims, QUOTA_CLAIMS, stored);
        const ended = await Promise.all(all.map((claim) => hasEnded(claim.job)));
        const others = all.filter((claim, at) => ended[at] === false && claim.job !== job);
        await judge(others);
        const expected = stored?.revision ?? 'absent';
        const value = [...others, { ...planned, job }];
        try {
          await store.commit([{ collection: QUOTA_CLAIMS, id: ALL, expected, value }]);
          return;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
  };
}
