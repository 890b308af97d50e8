import type { InstallStage } from '#shared/contract/primitives.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';

/**
 * Gives a failure the stage in which it happened and the last lines of the log; the cause stays as it was thrown.
 * @param mask hides what no error may show: a script's last words are part of many messages
 */
export function inStage(
  error: unknown,
  stage: InstallStage,
  logTail: readonly string[],
  mask: (text: string) => string = (text) => text,
): AppError {
  if (!isAppError(error)) {
    return new AppError('INTERNAL', mask(messageOf(error)), {
      details: { stage, logTail },
      cause: error,
    });
  }
  const isEndedFromOutside = error.code === 'JOB_CANCELED' || error.code === 'JOB_INTERRUPTED';
  const message = isEndedFromOutside ? `${error.message} at stage ${stage}` : error.message;
  return new AppError(error.code, mask(message), {
    details: { ...error.details, stage, logTail },
    ...(error.hint !== undefined && { hint: mask(error.hint) }),
    cause: error,
  });
}
