import type { Context, Middleware, Next } from 'koa';
import { z } from 'zod';
import type { ApiError } from '#shared/contract/api.ts';
import { findUnusable } from '#shared/contract/unusable-text.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { errorCodes, type ErrorCode } from '#shared/errors/codes.ts';
import type { Logger } from '#shared/log/log.ts';
import { plainText } from '#shared/text/plain-text.ts';

/** Limits the text that a refusal repeats: a client can send field names of any length. */
const MAX_PROBLEM_LENGTH = 300;
const MAX_FIELDS_NAMED = 50;

const statusByCode: Partial<Record<ErrorCode, number>> = {
  NOT_FOUND: 404,
  INSTANCE_NOT_FOUND: 404,
  JOB_NOT_FOUND: 404,
  NODE_NOT_FOUND: 404,
  OS_NOT_FOUND: 404,
  LOGIN_REQUIRED: 401,
  LOGIN_FAILED: 401,
  TOO_MANY_LOGINS: 429,
  NOT_ALLOWED: 403,
  PATH_NOT_ALLOWED: 403,
  NOT_FOR_PEERS: 403,
  QUOTA_EXCEEDED: 403,
  TOO_MANY_JOBS: 429,
  REQUEST_TOO_LARGE: 413,
  CONFLICT: 409,
  INSTANCE_EXISTS: 409,
  INSTANCE_STATE: 409,
  CHANNEL_FULL: 429,
  METAD_UNAVAILABLE: 503,
  STORE_UNAVAILABLE: 503,
  NODE_UNREACHABLE: 503,
  NODE_OFFLINE: 409,
  NODE_DRAINED: 409,
  NO_ROOM: 409,
  GUEST_UNREACHABLE: 502,
};

/** Returns the HTTP status of an expected failure: 4xx for refusals, 5xx for failures. */
export function httpStatusOf(code: ErrorCode): number {
  return statusByCode[code] ?? (errorCodes[code] === 2 ? 400 : 500);
}

export function describeApiError(error: AppError): ApiError {
  return {
    code: error.code,
    message: error.message,
    hint: error.hint ?? null,
    details: { ...error.details },
  };
}

/**
 * Creates the middleware that turns every failure into an answer. Unexpected errors are logged, and
 * their text is not sent.
 */
export function answerErrors(logger: Logger): Middleware {
  return async (context: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const known = toAppError(error, logger);
      context.status = httpStatusOf(known.code);
      context.body = describeApiError(known);
    }
  };
}

export function toAppError(error: unknown, logger: Logger): AppError {
  if (isAppError(error)) return error;
  logger.error('api.unexpected', { err: error });
  return new AppError('INTERNAL', 'unexpected failure in the node daemon', {
    hint: 'This is a bug. The log of the node daemon has the details.',
    cause: error,
  });
}

/**
 * Parses a client's input.
 * @throws AppError VALIDATION that names the field, never its value, which may be a secret
 */
export function parseInput<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  refuseUnusable(input);
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const field = issue.path.join('.');
    return cut(field === '' ? issue.message : `${field}: ${issue.message}`);
  });
  const fields = parsed.error.issues.map((issue) => cut(issue.path.join('.')));
  throw new AppError('VALIDATION', problems.slice(0, 5).join('; '), {
    details: { fields: fields.slice(0, MAX_FIELDS_NAMED) },
    cause: parsed.error,
  });
}

/** @throws AppError VALIDATION that names the field */
export function refuseUnusable(input: unknown): void {
  const unusable = findUnusable(input);
  if (unusable === undefined) return;
  const field = cut(plainText(unusable.path.join('.')));
  throw new AppError('VALIDATION', `${field === '' ? 'the value' : field}: ${unusable.problem}`, {
    details: { fields: [field] },
  });
}

function cut(text: string): string {
  return text.length <= MAX_PROBLEM_LENGTH ? text : `${text.slice(0, MAX_PROBLEM_LENGTH)}…`;
}

/** @param what names an endpoint or operation for users of the node's own socket only */
export function notForPeers(what: string): AppError {
  return new AppError('NOT_FOR_PEERS', `${what} is not available to other nodes`, {
    hint: 'Run the command on this node, or give all nodes the same release of gnt.',
  });
}
