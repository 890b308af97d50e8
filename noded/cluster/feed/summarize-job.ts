import type { JobSummary } from '#shared/contract/cluster-event.ts';
import { isDryRun, type JobRecord } from '#shared/contract/job.ts';

/** Drops the fields that may be long. */
export function summarizeJob(job: JobRecord): JobSummary {
  const { input, log, result, ...summary } = job;
  void [log, result];
  return { ...summary, ...(isDryRun({ input }) && { isDryRun: true }) };
}
