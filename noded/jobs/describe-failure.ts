import type { JobError } from '#shared/contract/job.ts';
import { AppError, isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { maskDetails } from '#shared/secret/mask-json.ts';
import { StageFailure } from './stage-failure.ts';

/** Limit of the details of a job's error, in characters of JSON: records may be kept for years. */
const MAX_DETAILS_CHARACTERS = 16_384;

/** Event of an unexpected failure in the node's log. */
export const UNEXPECTED = 'job.failed-unexpectedly';

export interface FailedJob {
  /** The job's number, by which the log names the failure. */
  readonly id: number;
  readonly phase: JobError['phase'];
  /** Hides the private and secret values that the job was given. */
  readonly mask: (text: string) => string;
}

/** Describes a thrown value for a job's record. Pure. */
export function describeFailure(thrown: unknown, { id, phase, mask }: FailedJob): JobError {
  const error = nameDiskFull(thrown);
  const { stage, logTail } =
    error instanceof StageFailure ? error : { stage: null, logTail: [] as const };
  const told = isAppError(error)
    ? { code: error.code, hint: error.hint ?? null, details: boundDetails(error) }
    : { code: 'INTERNAL', hint: null, details: {} };
  return {
    code: told.code,
    message: mask(tellableMessage(error)),
    hint: told.hint === null ? hintAtLog(told.code, id) : mask(told.hint),
    details: maskDetails(told.details, mask),
    phase,
    stage,
    logTail: logTail.map(mask),
  };
}

/** Returns a failure for an answer, without private and secret values. Pure. */
export function maskFailure(error: unknown, mask: (text: string) => string): AppError {
  if (!isAppError(error)) return new AppError('INTERNAL', tellableMessage(error), { cause: error });
  const { code, message, hint, details } = error;
  return new AppError(code, mask(message), {
    hint: hint === undefined ? undefined : mask(hint),
    details: maskDetails(details, mask),
    cause: error,
  });
}

/** Returns a command to paste if the failure is a bug. */
function hintAtLog(code: string, id: number): string | null {
  if (code !== 'INTERNAL') return null;
  return `journalctl -u gnt-noded --grep='"job":${id},.*${UNEXPECTED}' shows the reason; report it`;
}

function boundDetails({ details }: AppError): AppError['details'] {
  return JSON.stringify(details).length > MAX_DETAILS_CHARACTERS ? {} : details;
}
