import type { ApiError } from '#shared/contract/api.ts';
import type { JobError, JobRecord } from '#shared/contract/job.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { errorCodes, isErrorCode } from '#shared/errors/codes.ts';

export type ExitStatus = 0 | 1 | 2 | 3 | 130;

export interface FailureFields {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly exitStatus: ExitStatus;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Stage of the installation that failed. */
  readonly stage?: string | null;
  /** Last lines of the installation's log. */
  readonly logTail?: readonly string[];
  readonly cause?: unknown;
}

/**
 * A failure reported by the daemon. It is not an AppError, because this program may not know its
 * code yet.
 */
export class CommandFailure extends Error {
  readonly code: string;
  readonly hint: string | null;
  readonly exitStatus: ExitStatus;
  readonly details: Readonly<Record<string, unknown>>;
  readonly stage: string | null;
  readonly logTail: readonly string[];

  constructor(fields: FailureFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = 'CommandFailure';
    this.code = fields.code;
    this.hint = fields.hint;
    this.exitStatus = fields.exitStatus;
    this.details = fields.details ?? {};
    this.stage = fields.stage ?? null;
    this.logTail = fields.logTail ?? [];
  }
}

/**
 * Returns the failure of an API answer. An unknown code counts as refused for 4xx, else as failed.
 */
export function failureOfApi(status: number, error: ApiError): CommandFailure {
  const fallback = status >= 400 && status < 500 ? 2 : 1;
  return new CommandFailure({
    ...error,
    exitStatus: isErrorCode(error.code) ? errorCodes[error.code] : fallback,
  });
}

/** Returns the failure of a job. A refusal before any change exits 2, a later failure exits 1. */
export function failureOfJob(job: JobRecord): CommandFailure {
  const error: JobError = job.error ?? {
    code: job.status === 'canceled' ? 'JOB_CANCELED' : 'INTERNAL',
    message:
      job.status === 'canceled'
        ? `job ${job.id} (${job.summary}) was canceled`
        : `job ${job.id} (${job.summary}) failed without an error message`,
    hint: null,
    details: {},
    phase: 'execution',
    stage: null,
    logTail: [],
  };
  return new CommandFailure({
    ...error,
    details: { ...error.details, job: job.id },
    exitStatus: error.code === 'INTERRUPTED' ? 130 : error.phase === 'prerequisite' ? 2 : 1,
  });
}

/** Converts any thrown value to a failure for printing. */
export function failureOf(error: unknown): CommandFailure {
  if (error instanceof CommandFailure) return error;
  if (error instanceof AppError) {
    return new CommandFailure({
      code: error.code,
      message: error.message,
      hint: error.hint ?? null,
      exitStatus: errorCodes[error.code],
      details: error.details,
      cause: error,
    });
  }
  return new CommandFailure({
    code: 'INTERNAL',
    message: messageOf(error),
    hint: 'This is a bug: run the command again with --debug and report the trace',
    exitStatus: 1,
    cause: error,
  });
}
