import {
  type AppError,
  AppError as Failure,
  isAppError,
  tellableMessage,
} from '#shared/errors/app-error.ts';
import { joinHints } from './join-hints.ts';
import { StageFailure } from './stage-failure.ts';

/**
 * Joins the failure of a job and the failure of its cleanup. The result has the code, stage and log
 * of the first one.
 * @param second the failed cleanup, as the end of a sentence
 */
export function bothFailures(
  first: unknown,
  second: { readonly what: string; readonly error: unknown; readonly hint: string },
): AppError {
  const { what, error, hint } = second;
  const message = `${tellableMessage(first)}; and ${what}: ${tellableMessage(error)}`;
  const options = {
    details: {
      ...(isAppError(first) && first.details),
      alsoFailed: {
        code: isAppError(error) ? error.code : 'INTERNAL',
        message: tellableMessage(error),
      },
    },
    hint: joinHints(isAppError(first) ? first.hint : undefined, hint),
    cause: new AggregateError([first, error]),
  };
  if (first instanceof StageFailure) {
    const { stage, logTail } = first;
    return new StageFailure(first.code, message, { ...options, stage, logTail });
  }
  return new Failure(isAppError(first) ? first.code : 'INTERNAL', message, options);
}
