import { STATUS_CODES } from 'node:http';
import { isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { httpStatusOf } from '../http/http-errors.ts';

/** A refusal that exists only over HTTP. */
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

/** Converts any error to an answer. Unexpected errors are logged, and their text is not sent. */
export function toRapiFailure(error: unknown, logger: Logger): RapiFailure {
  if (error instanceof RapiFailure) return error;
  if (isAppError(error)) {
    const hint = error.hint === undefined ? '' : ` (${error.hint})`;
    return new RapiFailure(httpStatusOf(error.code), `${error.message}${hint}`);
  }
  // The client disconnected during its request.
  if (systemCodeOf(error) === 'ECONNRESET')
    return new RapiFailure(400, 'the request is incomplete');
  logger.error('rapi.unexpected', { err: error });
  return new RapiFailure(500, 'unexpected failure in the node daemon, see its log');
}

/** Ganeti's text of 404. Ansible's modules recognize a missing instance by it. */
const NOT_FOUND = 'Nothing matches the given URI';

/** Returns the body of a failure in the format that Ganeti's client expects. */
export function describeFailure(failure: RapiFailure): object {
  return {
    code: failure.status,
    message: STATUS_CODES[failure.status] ?? 'Error',
    explain: failure.status === 404 ? `${NOT_FOUND}: ${failure.message}` : failure.message,
  };
}
