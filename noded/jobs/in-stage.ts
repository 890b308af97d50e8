import type { InstallStage } from '#shared/contract/primitives.ts';
import { isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { maskDetails } from '#shared/secret/mask-json.ts';
import { StageFailure } from './stage-failure.ts';

/**
 * Gives a failure the stage in which it happened and the last lines of the log; the cause stays as
 * it was thrown.
 * @param mask hides what no error may show: a script's last words are part of many messages
 */
export function inStage(
  thrown: unknown,
  stage: InstallStage,
  logTail: readonly string[],
  mask: (text: string) => string = (text) => text,
): StageFailure {
  const error = nameDiskFull(thrown);
  if (!isAppError(error))
    return new StageFailure('INTERNAL', tellableMessage(error), { stage, logTail, cause: error });
  const isEndedFromOutside = error.code === 'JOB_CANCELED' || error.code === 'JOB_INTERRUPTED';
  const message = isEndedFromOutside ? `${error.message} at stage ${stage}` : error.message;
  return new StageFailure(error.code, mask(message), {
    stage,
    logTail,
    details: maskDetails(error.details, mask),
    hint: error.hint === undefined ? undefined : mask(error.hint),
    cause: error,
  });
}
