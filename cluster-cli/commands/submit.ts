import type { JobRecord } from '#shared/contract/job.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { Context } from '../terminal/context.ts';

/** Options of every command that submits a job. */
export interface SubmitOptions {
  readonly submit?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  /** Print the number of the job on a line of its own before all other output, as Ganeti does. */
  readonly printJobid?: boolean;
}

/**
 * Submits an opcode and follows the job according to the options. Returns null for `--submit` and
 * `--dry-run`.
 * @throws AppError VALIDATION before anything is sent; CommandFailure with the error of the daemon
 * or the job.
 */
export async function submitAndWatch(
  context: Context,
  input: OpcodeInput,
  options: SubmitOptions,
): Promise<JobRecord | null> {
  // Loaded on demand: a command that only reads does not need the large schemas of opcodes.
  return (await import('./submit-job.ts')).submitJob(context, input, options);
}
