/** Longest path below a mirror, in characters as asked for. */
const MAX_PATH_LENGTH = 2048;
/** What a server that decodes twice would take for a dot, a separator, or NUL. */
const TWICE_ENCODED = /%(?:2e|2f|5c|25|00)/i;

/**
 * The URL of a file of a mirror. What could mean another place than its letters say is refused; a
 * `.`, which apt puts into the paths of flat repositories, is left out.
 * @param base the URL that the administrator allowed
 * @param path percent-encoded, below the base, without a leading slash; '' is the base itself
 * @returns null when the path is refused
 */
export function mirrorUrl(base: string, path: string): URL | null {
  if (path.length > MAX_PATH_LENGTH) return null;
  const folder = folderOf(base);
  if (path === '') return folder;
  const segments = path.split('/').map(decodeSegment);
  if (!segments.every((segment) => segment !== null)) return null;
  const kept = segments.filter((segment) => segment !== '.').map(encodeURIComponent);
  const url = new URL(folder.href + kept.join('/'));
  return isBelow(url, base) ? url : null;
}

/** Whether a URL that a mirror redirects to is in the folder that was allowed. */
export function isBelow(url: URL, base: string): boolean {
  const folder = folderOf(base);
  return (
    url.origin === folder.origin &&
    url.username === '' &&
    url.password === '' &&
    url.pathname.startsWith(folder.pathname) &&
    !/\\|%(?:2f|5c)/i.test(url.pathname)
  );
}

/** The URL of a mirror with the slash at its end. */
export function folderOf(base: string): URL {
  const url = new URL(base);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function decodeSegment(text: string): string | null {
  // A query or a fragment would be the server's to read, and no file of a mirror needs one.
  if (/[?#]/.test(text)) return null;
  let segment: string;
  try {
    segment = decodeURIComponent(text);
  } catch {
    return null;
  }
  const isPlain = segment !== '' && segment !== '..' && !/[/\\\p{Cc}]/u.test(segment);
  return isPlain && !TWICE_ENCODED.test(segment) ? segment : null;
}
