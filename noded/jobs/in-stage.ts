import type { InstallStage } from '#shared/contract/primitives.ts';
import { isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { maskDetails } from '#shared/secret/mask-json.ts';
import { StageFailure } from './stage-failure.ts';

/**
 * Adds the stage and the last log lines to a failure, and keeps the original as its cause.
 * @param mask hides values in messages: many contain a script's last lines
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
