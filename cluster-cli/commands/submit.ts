import type { JobRecord } from '#shared/contract/job.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { Context } from '../terminal/context.ts';

/** Options of every command that makes a job. */
export interface SubmitOptions {
  readonly submit?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/**
 * Sends an opcode and follows it as the options say. Null when there is nothing to follow:
 * `--submit`, `--dry-run`.
 * @throws AppError VALIDATION before anything is sent; CommandFailure with what the daemon or the
 * job said.
 */
export async function submitAndWatch(
  context: Context,
  input: OpcodeInput,
  options: SubmitOptions,
): Promise<JobRecord | null> {
  // What jobs are made of is more than all else that a command which reads has to load.
  return (await import('./submit-job.ts')).submitJob(context, input, options);
}
