import type { RelaySettings } from '#shared/contract/relay.ts';

type Target =
  /** `query` has no question mark; null without one. */
  { readonly url: URL; readonly query: string | null } | { readonly refusal: string };

const MAX_TARGET_LENGTH = 8192;
/** A segment of a path, RFC 3986, 3.3. */
const SEGMENT = /^(?:[\w.~!$&'()*+,;=:@-]|%[\dA-F]{2})*$/i;
/** RFC 3986, 3.4, and the brackets that programs do not encode. */
const QUERY = /^(?:[\w.~!$&'()*+,;=:@/?[\]-]|%[\dA-F]{2})*$/i;
/** Encoded bytes that a server which decodes twice would take for syntax. */
const TWICE_ENCODED = /%(?:2e|2f|5c|25|00|3f|23)/i;

/**
 * Returns the URL of a request, which is sent as it was judged: nothing is decoded or normalised
 * later. Refuses each path that servers understand in different ways. An encoded slash within a
 * segment is allowed, since npm and GitLab encode names that contain one. Pure.
 * @param target of the guest below the relay, without a leading slash, with its query
 */
export function relayTarget(
  { url: base, paths, auth }: Pick<RelaySettings, 'url' | 'paths' | 'auth'>,
  target: string,
): Target {
  if (target.length > MAX_TARGET_LENGTH) return refuse('the path is too long');
  const question = target.indexOf('?');
  const path = question === -1 ? target : target.slice(0, question);
  const query = (question === -1 ? '' : target.slice(question + 1)) || null;
  if (!isPlainPath(path)) return refuse('servers could understand this path in different ways');
  if (!isAllowed(path, paths)) return refuse('the relay does not allow this path');
  if (query !== null && !QUERY.test(query)) return refuse('the query has invalid characters');
  if (auth.kind === 'query' && query !== null && hasParameter(query, auth.name))
    return refuse(`the query must not contain ${auth.name}`);
  const text = `${baseOf(base)}${path}`;
  const url = URL.parse(text);
  // A parser that changes the text could lead to a path that was not checked.
  if (url?.href !== text) return refuse('this path cannot be sent unchanged');
  return { url, query };
}

/**
 * Returns the guest's path for a redirection; undefined if it leads out of the relay. Pure.
 * @param url of the request
 */
export function relayedLocation(
  settings: Pick<RelaySettings, 'url' | 'paths' | 'auth'>,
  name: string,
  url: URL,
  location: string,
): string | undefined {
  const target = URL.parse(location, url);
  const base = baseOf(settings.url);
  if (!target?.href.startsWith(base)) return undefined;
  const query = new URLSearchParams(target.search);
  if (settings.auth.kind === 'query' && query.has(settings.auth.name)) {
    query.delete(settings.auth.name);
    target.search = query.toString();
  }
  const below = `${target.pathname}${target.search}`.slice(new URL(base).pathname.length);
  if ('refusal' in relayTarget(settings, below)) return undefined;
  return `/relay/${name}/${below}${target.hash}`;
}

/** Returns the URL of a relay in the form that requests have, with a final slash. */
function baseOf(url: string): string {
  const { href } = new URL(url);
  return href.endsWith('/') ? href : `${href}/`;
}

function isPlainPath(path: string): boolean {
  const segments = path.split('/');
  // A final slash is part of many paths, an empty segment elsewhere is not.
  if (segments.at(-1) === '') segments.pop();
  return segments.every(isPlainSegment);
}

function isPlainSegment(segment: string): boolean {
  if (segment === '' || !SEGMENT.test(segment)) return false;
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    return false;
  }
  if (/[\\\p{Cc}?#]/u.test(decoded) || TWICE_ENCODED.test(decoded)) return false;
  // `;` begins parameters in some servers, which ignore them: `..;x` is `..` there.
  const names = decoded.split('/').map((name) => name.split(';', 1)[0] ?? '');
  return names.every((name) => name !== '' && name !== '.' && name !== '..');
}

/** Compares whole segments, before they are decoded. */
function isAllowed(path: string, paths: readonly string[] | undefined): boolean {
  if (paths === undefined) return true;
  const asked = `/${path}`;
  return paths.some((allowed) => {
    const folder = allowed.endsWith('/') ? allowed : `${allowed}/`;
    return asked === allowed || asked.startsWith(folder);
  });
}

/** Servers differ in case, in brackets and in separators: any of these readings counts. */
function hasParameter(query: string, name: string): boolean {
  return query.split(/[&;?]/).some((pair) => {
    const [raw = ''] = pair.split(/[=[]|%5b/i, 1);
    let key: string;
    try {
      key = decodeURIComponent(raw.replaceAll('+', ' '));
    } catch {
      return true;
    }
    const plain = (text: string): string => text.trim().toLowerCase().replaceAll(/[.\s]/g, '_');
    return plain(key) === plain(name);
  });
}

function refuse(refusal: string): Target {
  return { refusal };
}
