import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';

/** Headers that decide about a request before any look-up. */
export interface GuardedHeaders {
  readonly ifNoneMatch: string | undefined;
  readonly token: string | undefined;
}

export type GuardResult =
  | { readonly ok: true; readonly headers: GuardedHeaders }
  | { readonly ok: false; readonly status: 400 | 403; readonly reason: string };

/**
 * Names of the service for a guest that connects directly, also Google's, which no other site can
 * have. Another name means a rebinding attack or a proxy.
 */
const OWN_HOST =
  /^(169\.254\.169\.254|\[fe80::a9fe:a9fe(%[a-z0-9%._-]{1,32})?\]|metadata\.google\.internal)(:80)?$/i;

/**
 * Checks the raw header list (names and values in turn) once.
 * @param authority host of an absolute-form target
 * @param needsHost whether the Host header is mandatory, as in HTTP/1.1
 */
export function guardRequest(
  rawHeaders: readonly string[],
  authority: string | null,
  needsHost: boolean,
): GuardResult {
  let host: string | undefined;
  let ifNoneMatch: string | undefined;
  let token: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const rawName = rawHeaders[index] ?? '';
    if (!isGuardedLength(rawName.length)) continue;
    const value = rawHeaders[index + 1] ?? '';
    const name = rawName.toLowerCase();
    if (name === 'host') {
      if (host !== undefined) return refuse(400, 'more than one Host header');
      host = value;
    } else if (name === 'x-forwarded-for' || name === 'forwarded') {
      return refuse(403, 'forwarded requests are refused');
    } else if (name === 'if-none-match') {
      ifNoneMatch = ifNoneMatch === undefined ? value : `${ifNoneMatch},${value}`;
    } else if (name === 'x-aws-ec2-metadata-token') {
      token = value;
    }
  }
  const refusal = judgeHost(host, authority, needsHost);
  if (refusal) return refusal;
  return { ok: true, headers: { ifNoneMatch, token } };
}

/** A cheap first test: most headers have another length. */
function isGuardedLength(length: number): boolean {
  switch (length) {
    case 'host'.length:
    case 'forwarded'.length:
    case 'if-none-match'.length:
    case 'x-forwarded-for'.length:
    case 'x-aws-ec2-metadata-token'.length:
      return true;
    default:
      return false;
  }
}

function judgeHost(
  host: string | undefined,
  authority: string | null,
  needsHost: boolean,
): GuardResult | null {
  if (host === undefined && needsHost) return refuse(400, 'the Host header is missing');
  const isOurs = isOwnHost(host) && isOwnHost(authority ?? undefined);
  return isOurs ? null : refuse(403, 'the Host header does not name this service');
}

/** HTTP/1.0 needs no Host header. */
function isOwnHost(host: string | undefined): boolean {
  return host === undefined || host === SERVICE_IPV4 || OWN_HOST.test(host);
}

function refuse(status: 400 | 403, reason: string): GuardResult {
  return { ok: false, status, reason };
}

/** RFC 9110, 13.1.2: a list of validators, compared weakly, or `*`. */
export function matchesEtag(header: string, etag: string): boolean {
  if (header.trim() === '*') return true;
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}
