import type { Context, Middleware, Next } from 'koa';
import { z } from 'zod';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { parseInput } from '../http/http-errors.ts';
import { parseUtf8Json, readBody } from '../http/read-body.ts';
import type { LoginLimit } from '../rapi/login-limit.ts';
import type { UsersFile } from '../rapi/users-file.ts';
import { requireSameOrigin } from './request-origin.ts';
import { formatCookie, readCookie } from './session-cookie.ts';
import type { Sessions } from './sessions.ts';

const MAX_LOGIN_BYTES = 4096;
const login = z.strictObject({ user: z.string().max(255), password: z.string().max(1024) });

export interface LogInDependencies {
  readonly users: UsersFile;
  readonly limit: LoginLimit;
  readonly sessions: Sessions;
  readonly cookie: string;
  readonly logger: Logger;
}

/** Creates the middleware of `POST /login`, which takes JSON: a form of another site sends none. */
export function logIn(dependencies: LogInDependencies): Middleware {
  return async (context: Context, next: Next) => {
    if (context.path !== '/login' || context.method !== 'POST') await next();
    else await answer(context, dependencies);
  };
}

async function answer(
  context: Context,
  { users, limit, sessions, cookie, logger }: LogInDependencies,
): Promise<void> {
  requireSameOrigin(context.req, true);
  const address = context.ip;
  requireAttempt(context, limit);
  if (context.is('application/json') === false)
    throw new AppError('VALIDATION', 'the body must be application/json');
  const given = parseInput(login, parseUtf8Json(await readBody(context.req, MAX_LOGIN_BYTES)));
  const user = await users.authenticate(given.user, given.password);
  // Many attempts may have waited for their bodies since the first check.
  requireAttempt(context, limit);
  if (user === undefined) {
    limit.failed(address);
    // Logged without the name, which may be a password in the wrong place.
    logger.warn('web.login-failed', { address });
    throw new AppError('LOGIN_FAILED', 'the user name or the password is wrong');
  }
  const former = sessions.find(readCookie(context.req, cookie) ?? '');
  if (former !== undefined) sessions.end(former);
  context.set('Set-Cookie', formatCookie(cookie, sessions.begin(user).id));
  context.status = 204;
  logger.info('web.login', { user: user.name, address });
}

/** @throws AppError TOO_MANY_LOGINS, also for the right password */
function requireAttempt(context: Context, limit: LoginLimit): void {
  const waitS = limit.waitS(context.ip);
  if (waitS === 0) return;
  context.set('Retry-After', String(waitS));
  throw new AppError('TOO_MANY_LOGINS', `too many wrong passwords: wait ${waitS} s`);
}
