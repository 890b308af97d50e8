import { STATUS_CODES } from 'node:http';
import { isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { httpStatusOf } from '../http/http-errors.ts';

/** A refusal that only HTTP knows. */
export class RapiFailure extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, explain: string, headers: Readonly<Record<string, string>> = {}) {
    super(explain);
    this.name = 'RapiFailure';
    this.status = status;
    this.headers = headers;
  }
}

/** Whatever was thrown as an answer; our own bugs are logged and told without their text. */
export function toRapiFailure(error: unknown, logger: Logger): RapiFailure {
  if (error instanceof RapiFailure) return error;
  if (isAppError(error)) {
    const hint = error.hint === undefined ? '' : ` (${error.hint})`;
    return new RapiFailure(httpStatusOf(error.code), `${error.message}${hint}`);
  }
  // The client went away in the middle of its request.
  if (systemCodeOf(error) === 'ECONNRESET')
    return new RapiFailure(400, 'the request is incomplete');
  logger.error('rapi.unexpected', { err: error });
  return new RapiFailure(500, 'unexpected failure in the node daemon, see its log');
}

/** The body of every failure, in the shape that Ganeti's client expects. */
export function describeFailure(failure: RapiFailure): object {
  return {
    code: failure.status,
    message: STATUS_CODES[failure.status] ?? 'Error',
    explain: failure.message,
  };
}
