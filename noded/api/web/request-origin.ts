import type { IncomingMessage } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Refuses other host names than that of the loopback page: a web site whose name resolves to
 * 127.0.0.1 has another one (DNS rebinding), and so has the page of an earlier command.
 * @param name without a port: an SSH tunnel may have another one
 * @throws AppError LOGIN_REQUIRED
 */
export function requireLoopbackName(
  { headers }: Pick<IncomingMessage, 'headers'>,
  name: string,
): void {
  if ((headers.host ?? '').replace(/:\d{1,5}$/, '') === name) return;
  throw new AppError('LOGIN_REQUIRED', 'gnt-cluster web did not print this address', {
    hint: 'Open the newest address that gnt-cluster web printed.',
  });
}

/**
 * Refuses requests that a browser sends on behalf of another site. Other programs send neither
 * header.
 * @throws AppError NOT_ALLOWED
 */
export function requireSameOrigin(
  { headers }: Pick<IncomingMessage, 'headers'>,
  isTls: boolean,
): void {
  const site = headers['sec-fetch-site'];
  const own = `${isTls ? 'https' : 'http'}://${headers.host ?? ''}`;
  const isSameSite = site === undefined || site === 'same-origin' || site === 'none';
  if (isSameSite && (headers.origin === undefined || headers.origin === own)) return;
  throw new AppError('NOT_ALLOWED', 'another web site sent this request', {
    hint: `Open ${own} in the browser.`,
  });
}
