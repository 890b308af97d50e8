import type { JobError } from '#shared/contract/job.ts';
import { type AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { StageFailure } from './stage-failure.ts';

/** The longest details of a job's error, as JSON: they may be kept for years. */
const MAX_DETAILS_CHARACTERS = 16_384;

/** What a job's record says of what was thrown. Pure. */
export function describeFailure(thrown: unknown, phase: JobError['phase']): JobError {
  const error = nameDiskFull(thrown);
  const inStage =
    error instanceof StageFailure
      ? { stage: error.stage, logTail: [...error.logTail] }
      : { stage: null, logTail: [] };
  if (!isAppError(error)) {
    return {
      code: 'INTERNAL',
      message: `unexpected failure: ${messageOf(error)}`,
      hint: 'this is a bug: the node daemon logged it',
      details: {},
      phase,
      ...inStage,
    };
  }
  const { code, message, hint = null } = error;
  return { code, message, hint, details: boundDetails(error), phase, ...inStage };
}

function boundDetails({ details }: AppError): JobError['details'] {
  return JSON.stringify(details).length > MAX_DETAILS_CHARACTERS ? {} : { ...details };
}
