import type { IncomingMessage } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';

/** Names of this host for a browser on it, or at the other end of an SSH tunnel. */
const LOOPBACK_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/;

/**
 * Refuses other host names on a loopback port: a web site whose name resolves to 127.0.0.1 has
 * another one (DNS rebinding).
 * @throws AppError NOT_ALLOWED
 */
export function requireLoopbackHost({ headers }: Pick<IncomingMessage, 'headers'>): void {
  if (LOOPBACK_HOST.test(headers.host ?? '')) return;
  throw new AppError('NOT_ALLOWED', 'the page is served for 127.0.0.1 and localhost only', {
    hint: 'Open the address that gnt-cluster web printed.',
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
