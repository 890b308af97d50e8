import type { IncomingMessage } from 'node:http';

/**
 * Returns the name of the cookie. Browsers send the cookies of a host to all of its ports, so each
 * loopback port has a name of its own.
 * @param port null with TLS
 */
export function cookieName(port: number | null): string {
  return port === null ? '__Host-gnt' : `gnt-${port}`;
}

/**
 * Returns the header that sets the cookie. Without TLS, not every browser accepts `Secure`.
 * @param id empty: remove the cookie
 */
export function formatCookie(name: string, id: string): string {
  const isTls = name.startsWith('__Host-');
  const end = id === '' ? '; Max-Age=0' : '';
  return `${name}=${id}; Path=/; HttpOnly; SameSite=Strict${isTls ? '; Secure' : ''}${end}`;
}

/** Returns the session's id of a request; undefined without one. */
export function readCookie(
  { headers }: Pick<IncomingMessage, 'headers'>,
  name: string,
): string | undefined {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key = '', value = ''] = pair.trim().split('=', 2);
    if (key === name) return value;
  }
  return undefined;
}
