export interface RequestTarget {
  /** Decoded, without leading and trailing slash. */
  readonly path: string;
  readonly query: URLSearchParams | null;
  /**
   * Path and query below `/relay/`, as the guest wrote them: the server of a relay decides about
   * their meaning. Null for other targets.
   */
  readonly relay: string | null;
  /** Host of an absolute-form target, which overrides the Host header (RFC 9112, 3.2.2). */
  readonly authority: string | null;
}

/** No path of ours has control characters, NUL above all. */
const CONTROL = /\p{Cc}/u;
const RELAY_FOLDER = '/relay/';

/**
 * Parses a request target. Nothing is normalised: `.`, `..` and empty segments are ordinary names
 * that do not exist.
 * @returns null when it is malformed
 */
export function parseRequestTarget(target: string): RequestTarget | null {
  let rest = target;
  let authority: string | null = null;
  if (!rest.startsWith('/')) {
    if (!/^http:\/\//i.test(rest)) return null;
    const named = rest.slice('http://'.length);
    const end = named.search(/[/?#]/);
    authority = end === -1 ? named : named.slice(0, end);
    const after = named.slice(authority.length);
    rest = after.startsWith('/') ? after : `/${after}`;
  }
  if (rest.startsWith(RELAY_FOLDER))
    return { path: '', query: null, relay: rest.slice(RELAY_FOLDER.length), authority };
  const question = rest.indexOf('?');
  const raw = question === -1 ? rest : rest.slice(0, question);
  const path = decodePath(raw);
  if (path === null) return null;
  const query = question === -1 ? null : new URLSearchParams(rest.slice(question + 1));
  return { path, query, relay: null, authority };
}

function decodePath(raw: string): string | null {
  const end = raw.length > 1 && raw.endsWith('/') ? raw.length - 1 : raw.length;
  const path = raw.slice(1, end);
  if (path.includes('#')) return null;
  if (!path.includes('%')) return CONTROL.test(path) ? null : path;
  // An encoded slash is part of a name, not a separator, and no name of ours has one.
  if (/%2f/i.test(path)) return safeDecode(path) === null ? null : '\ufffd';
  const decoded = safeDecode(path);
  return decoded === null || CONTROL.test(decoded) ? null : decoded;
}

function safeDecode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
