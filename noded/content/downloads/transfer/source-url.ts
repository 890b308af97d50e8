import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import { readLogin, type SourceLogin } from '#shared/contract/source-login.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { Login } from './netrc.ts';

export type Source =
  { readonly kind: 'path'; readonly path: string } | { readonly kind: 'url'; readonly url: URL };

const PROTOCOLS = ['http:', 'https:', 'ftp:'];
/** Presigned URLs carry their credentials in the query. */
const SECRET_QUERY = /(sig|token|key|secret|pass|cred|auth)/i;

/** Returns undefined for anything but an absolute path or an http, https or ftp URL. */
export function parseSource(text: string): Source | undefined {
  if (text.includes('\0')) return undefined;
  if (isAbsolute(text)) return { kind: 'path', path: text };
  const url = URL.parse(text);
  // The parser accepts `http:host` without `//`, which is a mistake.
  if (!url || !PROTOCOLS.includes(url.protocol) || !/^[a-z]+:\/\//i.test(text)) return undefined;
  return url.hostname === '' ? undefined : { kind: 'url', url };
}

/**
 * Formats a URL for messages and logs: without user, password, fragment and likely credentials in
 * the query.
 */
export function formatUrl(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  shown.hash = '';
  for (const name of new Set(shown.searchParams.keys())) {
    if (SECRET_QUERY.test(name)) shown.searchParams.set(name, 'redacted');
  }
  return shown.href;
}

/** Returns the host as a literal address, or undefined for a name. */
export function literalAddressOf(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? undefined : host;
}

/**
 * Returns the login in a URL, or undefined. Opcodes have none, but records of older versions may.
 * @throws AppError DOWNLOAD_FAILED when it is not percent-encoded
 */
export function loginOf(url: URL): Login | undefined {
  let login: SourceLogin | undefined;
  try {
    login = readLogin(url);
  } catch (error) {
    const shown = formatUrl(url);
    throw new AppError(
      'DOWNLOAD_FAILED',
      `cannot download ${shown}: the login in the URL cannot be parsed`,
      {
        details: { url: shown },
        hint: "Write a '%' in a user name or password as %25.",
        cause: error,
      },
    );
  }
  return login && { user: login.user, password: new Secret(login.password) };
}
