import type { Clock } from '#shared/clock/clock.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { REDACTED } from '#shared/contract/redacted.ts';
import type { Logger } from '#shared/log/log.ts';
import type { JobRepository } from './job-repository.ts';

/**
 * Ends the records of jobs that no node runs now.
 * @param reason a clause for users
 * @returns the ended jobs
 */
export async function failInterruptedJobs(
  isInterrupted: (job: JobRecord) => boolean,
  reason: string,
  { jobs, clock, logger }: { jobs: JobRepository; clock: Clock; logger: Logger },
): Promise<readonly JobRecord[]> {
  const interrupted = (await jobs.list()).filter((job) => !hasEnded(job) && isInterrupted(job));
  for (const job of interrupted) {
    logger.warn('job.interrupted', { job: job.id, summary: job.summary });
    await jobs.save(interruptedJob(job, reason, clock.now()));
  }
  return interrupted;
}

export function hasEnded({ status }: JobRecord): boolean {
  return ['success', 'error', 'canceled'].includes(status);
}

/**
 * Returns the hint of an interrupted job. A new instance may have a record already, and the same
 * operation is then refused. Pure.
 * @param again the hint for all other operations
 */
export function hintAfterInterrupt(
  { opcode, name }: Readonly<Record<string, unknown>>,
  again: string,
): string {
  if (opcode !== 'INSTANCE_CREATE' || typeof name !== 'string') return again;
  return `Run gnt-instance reinstall ${name} if the instance exists (gnt-instance info ${name}). Otherwise: ${again}`;
}

export function interruptedJob(job: JobRecord, reason: string, nowMs: number): JobRecord {
  const again = JSON.stringify(job.input).includes(REDACTED)
    ? 'Submit the operation again, with its secrets.'
    : 'Submit the operation again.';
  return {
    ...job,
    status: 'error',
    waitsFor: [],
    waitsBecause: null,
    endedAtMs: nowMs,
    error: {
      code: 'JOB_INTERRUPTED',
      message: `${job.summary}: ${reason}`,
      hint: hintAfterInterrupt(job.input, again),
      details: {},
      phase: 'execution',
      stage: null,
      logTail: [],
    },
  };
}
