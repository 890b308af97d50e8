const MAX_PATH_LENGTH = 2048;
/** Encoded dots, separators and NUL, for servers that decode twice. */
const TWICE_ENCODED = /%(?:2e|2f|5c|25|00)/i;

/**
 * Returns the URL of a file of a mirror. Refuses ambiguous paths. Drops `.` segments, which apt
 * inserts for flat repositories.
 * @param base the allowed URL
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

/** Whether a redirection leads into the allowed folder. */
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

export function folderOf(base: string): URL {
  const url = new URL(base);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function decodeSegment(text: string): string | null {
  // No file of a mirror needs a query or a fragment.
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
